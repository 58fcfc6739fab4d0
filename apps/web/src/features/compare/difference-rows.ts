/**
 * What runs differ in, in words where a setting is off: `backend.lora` null beside a rank of 8 is "all weights" in the row of the rank,
 * and no row of its own. Pure.
 */
import type { Comparison } from "@rolldeck/contracts/api/runs";
import { nullMeaningOf } from "../new-run/config-fields.ts";

interface DifferenceRow {
  readonly path: string;
  /** As the runs come; null: the run's config says nothing of it. */
  readonly values: readonly (string | null)[];
}

export function differenceRows(differences: Comparison["configDifferences"]): DifferenceRow[] {
  const groups = differences.filter(({ path }) => differences.some((other) => isUnder(other.path, path)));
  return differences
    .filter((difference) => !groups.includes(difference))
    .map(({ path, values }) => ({
      path,
      values: values.map((value, run) => {
        if (value === "null") return nullMeaningOf(path);
        const off = value === null && groups.find((group) => isUnder(path, group.path) && group.values[run] === "null");
        return off ? nullMeaningOf(off.path) : value;
      }),
    }));
}

const isUnder = (path: string, group: string): boolean => path.startsWith(`${group}.`) || path.startsWith(`${group}[`);
