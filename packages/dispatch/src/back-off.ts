/**
 * How long a failed rollout stays away: doubling, capped, and spread so that a burst of failures does not come back as one. What
 * failed says how long it takes to be well again.
 */
import { type Ending, endingRule } from "@rolldeck/contracts/endings";
import type { Boundary } from "@rolldeck/contracts/errors";
import { mixHash } from "./mix-hash.ts";

interface BackOff {
  readonly firstMs: number;
  readonly capMs: number;
}

/** Another worker, or another try, may do better at once. */
const otherwise: BackOff = { firstMs: 1_000, capMs: 60_000 };
const byBoundary: Readonly<Partial<Record<Boundary, BackOff>>> = {
  /** A host that is full or slow, an image that is pulled. */
  sandbox: { firstMs: 5_000, capMs: 120_000 },
  /** A server that restarts loads its weights first. */
  "model-server": { firstMs: 10_000, capMs: 300_000 },
};

/**
 * @param failures in a row, from 1
 * @param key tells rollouts apart: the spread is a function of it
 * @returns milliseconds, between half of the doubled time and all of it
 */
export function backOffMs(failures: number, key: string, ending: Ending | null = null): number {
  const boundary = ending === null ? undefined : endingRule(ending).boundary;
  const { firstMs, capMs } = (boundary && byBoundary[boundary]) ?? otherwise;
  const full = Math.min(firstMs * 2 ** Math.min(Math.max(failures, 1) - 1, 20), capMs);
  return Math.round(full / 2 + (full / 2) * (mixHash(key, failures) / 2 ** 32));
}
