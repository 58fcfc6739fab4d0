/** How long a failed rollout stays away: doubling, capped, and spread so that a burst of failures does not come back as one. */
import { mixHash } from "./mix-hash.ts";

const firstMs = 1_000;
const capMs = 60_000;

/**
 * @param failures in a row, from 1
 * @param key tells rollouts apart: the spread is a function of it
 * @returns milliseconds, between half of the doubled time and all of it
 */
export function backOffMs(failures: number, key: string): number {
  const full = Math.min(firstMs * 2 ** Math.min(Math.max(failures, 1) - 1, 20), capMs);
  return Math.round(full / 2 + (full / 2) * (mixHash(key, failures) / 2 ** 32));
}
