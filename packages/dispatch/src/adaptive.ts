/**
 * How many rollouts may run at once, from what the engine bears: more while its cache is roomy and nothing queues inside it, fewer
 * when it is crowded. Invariants: no change within `holdMs` of the last one, nor on a reading older than it; it grows only to
 * where the cache is expected to stay clear of the trimming mark, so that it does not swing between the two; never below one
 * nor above the bound. A reading speaks of its own moment: what ran then counts, not what has begun or ended since.
 */
import type { EngineLoad, RunLimit } from "@rolldeck/contracts/plan";

export const holdMs = 30_000;
/** A reading older than this says nothing of now. */
export const freshMs = 15_000;
const roomyCacheUse = 0.75;
const crowdedCacheUse = 0.92;
/** Growth stops where the cache is expected to be this full: well below the trimming mark. */
const targetCacheUse = 0.85;
const growBy = 1.25;
const trimTo = 0.9;
/** Growth needs a limit that is in use: an idle engine is no sign of room. */
const usedShare = 0.9;

/** What must run for a limit to be in use. One place may be between two rollouts: of a small limit nearly always one is. */
const inUse = (limit: number): number => Math.max(1, Math.min(limit * usedShare, limit - 1));

export interface AdaptiveInput {
  readonly now: number;
  /** The config's bound of the run stage. */
  readonly bound: number;
  /** As it is; null = the bound. */
  readonly current: RunLimit | null;
  readonly engine: EngineLoad | null;
  /** Rollouts in the run stage. */
  readonly inRun: number;
  /** Of them, those that were in it already when the engine was read. */
  readonly inRunThen: number;
}

/** @returns the new limit with its reason, or null: hold */
export function adaptRunLimit(input: AdaptiveInput): { readonly to: number; readonly reason: string } | null {
  const { now, current, engine } = input;
  if (engine === null || now - engine.at > freshMs) return null;
  if (current !== null && (now - current.since < holdMs || engine.at <= current.since)) return null;
  return trim(input, engine) ?? grow(input, engine);
}

const limitOf = ({ current, bound }: AdaptiveInput): number => Math.min(current?.limit ?? bound, bound);

function trim(input: AdaptiveInput, { running, waiting, cacheUse }: EngineLoad) {
  if (waiting === 0 && cacheUse <= crowdedCacheUse) return null;
  const limit = limitOf(input);
  // More run than may: the last trim has not told yet.
  if (input.inRun > limit) return null;
  // At the end of a step few run any more of those that crowded it.
  const ran = Math.max(input.inRun, running + waiting, 1);
  const to = Math.max(1, Math.floor(Math.min(limit, ran) * trimTo));
  if (to >= limit) return null;
  const cause = waiting > 0 ? `${waiting} requests wait inside the engine` : `its cache is ${percent(cacheUse)} full`;
  return { to, reason: `fewer at once: ${cause}` };
}

function grow(input: AdaptiveInput, { waiting, cacheUse }: EngineLoad) {
  const limit = limitOf(input);
  if (waiting > 0 || cacheUse >= roomyCacheUse || input.inRunThen < inUse(limit)) return null;
  const bearable = cacheUse > 0 ? Math.floor((input.inRunThen * targetCacheUse) / cacheUse) : Number.POSITIVE_INFINITY;
  const to = Math.min(Math.ceil(limit * growBy), bearable, input.bound);
  return to > limit ? { to, reason: `more at once: the engine's cache is ${percent(cacheUse)} full` } : null;
}

const percent = (share: number): string => `${Math.round(share * 100)} %`;
