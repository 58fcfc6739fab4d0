/** Comparisons: all variants pass the check of a launch before any run is written, and all runs are written at once. */
import { InputError } from "@rolldeck/contracts/errors";
import { mergeConfig } from "@rolldeck/contracts/merge-config";
import { listComparisons, readComparison } from "@rolldeck/db/reads/read-comparison";
import { createComparison } from "@rolldeck/db/runs/create-comparison";
import type { Pool } from "pg";
import type { ComparisonServices } from "../services.ts";
import { definitionNotes } from "./definition-notes.ts";
import type { LaunchCheck } from "./launch-check.ts";
import { parseConfigText } from "./parse-config-text.ts";
import { variantIssues } from "./variant-issues.ts";

export interface ComparisonServiceOptions {
  readonly pool: Pool;
  /** Tells the run's planner. Never fails: the row is written, and the sweep finds a run nobody was told of. */
  readonly wake: (runId: string) => Promise<void>;
  readonly check: LaunchCheck;
}

export function createComparisonServices({ pool, wake, check }: ComparisonServiceOptions): ComparisonServices {
  return {
    async launch({ name, config, variants }) {
      const base = mappingOf(config);
      const checked = [];
      for (const { label, change } of variants) {
        const merged = mergeConfig({ ...base, name: `${name}: ${label}` }, change);
        checked.push({ label, change, ...(await check(merged)) });
      }
      const accepted = checked.flatMap(({ label, change, config: whole }) =>
        whole === null ? [] : [{ label, change, config: whole }],
      );
      if (accepted.length < checked.length) throw new InputError(variantIssues(checked));
      const { comparisonId, runIds } = await createComparison(pool, { name, variants: accepted });
      await Promise.all(runIds.map(wake));
      return { comparisonId, runs: runIds.map((runId, at) => ({ label: accepted[at]?.label ?? "", runId })) };
    },
    list: (input) => listComparisons(pool, input),
    async get({ comparisonId }) {
      const found = await readComparison(pool, comparisonId);
      return { ...found, notes: definitionNotes(found.native) };
    },
  };
}

/** @throws InputError for anything but a mapping */
function mappingOf(config: unknown): object {
  const at = (issues: InputError["issues"]) =>
    issues.map((issue) => ({ ...issue, path: issue.path === "" ? "config" : `config.${issue.path}` }));
  try {
    const value = typeof config === "string" ? parseConfigText(config) : config;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    if (error instanceof InputError) throw new InputError(at(error.issues));
    throw error;
  }
  throw new InputError([
    { path: "config", message: "a config is a mapping of keys to values", fix: "start from a preset" },
  ]);
}
