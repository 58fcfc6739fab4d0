/** Which of a run's checkpoints stay, and why. Pure: whoever removes the others checks again what must not go. */
import { type KeepReason, keepReasons } from "@rolldeck/contracts/keep-reasons";
import type { CheckpointConfig } from "@rolldeck/contracts/run-config";

export interface CheckpointFacts {
  /** Policy version; 0 = what the run began with. */
  readonly version: number;
  readonly pinned: boolean;
  /** Another run began, or is to begin, with it. */
  readonly isParent: boolean;
  readonly served: boolean;
  /** The rule's metric of this version; null = not measured. */
  readonly measure: number | null;
  /** Not measured yet, and the measurement is under way. */
  readonly awaited: boolean;
}

/**
 * @param checkpoints the complete ones, each version once
 * @returns reasons by version; a version without any may go
 */
export function keptCheckpoints(
  checkpoints: readonly CheckpointFacts[],
  { keep, keepBest }: Pick<CheckpointConfig, "keep" | "keepBest">,
): ReadonlyMap<number, readonly KeepReason[]> {
  const trained = checkpoints.filter(({ version }) => version > 0).sort((a, b) => b.version - a.version);
  const last = new Set(trained.slice(0, keep).map(({ version }) => version));
  const best = new Set(keepBest === null ? [] : bestOf(trained, keepBest).map(({ version }) => version));
  const newest = Math.max(...checkpoints.map(({ version }) => version));
  return new Map(
    checkpoints.map((checkpoint) => {
      const { version, pinned, isParent, served, awaited } = checkpoint;
      const holds: Record<KeepReason, boolean> = {
        newest: version === newest,
        last: last.has(version),
        best: best.has(version),
        pinned,
        parent: isParent,
        served,
        start: version === 0,
        "measure-awaited": keepBest !== null && awaited,
      };
      return [version, keepReasons.filter((reason) => holds[reason])];
    }),
  );
}

/** @param newestFirst of equal measures the first stays first */
function bestOf(
  newestFirst: readonly CheckpointFacts[],
  { count, better }: NonNullable<CheckpointConfig["keepBest"]>,
): CheckpointFacts[] {
  const sign = better === "higher" ? 1 : -1;
  const measured = newestFirst.flatMap((checkpoint) =>
    checkpoint.measure !== null && Number.isFinite(checkpoint.measure)
      ? [{ checkpoint, worth: sign * checkpoint.measure }]
      : [],
  );
  return measured
    .sort((a, b) => b.worth - a.worth || b.checkpoint.version - a.checkpoint.version)
    .slice(0, count)
    .map(({ checkpoint }) => checkpoint);
}
