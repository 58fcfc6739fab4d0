/**
 * How long and how often a failing request is tried. Pure: clock and chance are arguments.
 *
 * Invariants: a pause is never shorter than what the server asked for; the number of tries and the time in all are bounded by
 * the policy; a forbidden time above the cap is an answer, not a wait.
 */
import type { BoundaryError } from "@rolldeck/contracts/errors";

export interface RetryPolicy {
  /** Tries in all, over every endpoint. */
  readonly maxTries: number;
  /** One try, milliseconds; null = as long as the server works. */
  readonly tryMs: number | null;
  /** All tries and pauses since the call began; null = no limit. */
  readonly totalMs: number | null;
  /** Failures in a row are waited out this long, from the first of them; null = no limit. */
  readonly outageMs: number | null;
  /** First pause; doubles up to `maxPauseMs`, with jitter. */
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
  /** A server that asks for more patience than this is reported instead of obeyed. */
  readonly maxRetryAfterMs: number;
}

/** What one try came to. */
export type Try<T> =
  | { readonly is: "done"; readonly value: T }
  /** Trying the same again may help. */
  | Retry
  /** It came to an end that no repetition changes. */
  | { readonly is: "failed"; readonly error: Error };
export interface Retry {
  readonly is: "retry";
  readonly error: BoundaryError;
  /** The server's own word; null when it gave none. */
  readonly retryAfterMs: number | null;
  /** Nobody answered: it speaks against the endpoint, not against the request. */
  readonly down: boolean;
}

export interface CallSoFar {
  /** Tries made. */
  readonly tries: number;
  readonly startedAtMs: number;
  /** When the present row of failures began. */
  readonly failingSinceMs: number;
}
export type Limit = "tries" | "total" | "outage" | "retry-after";

/** Between half and all of the doubling pause: a crowd of rollouts must not come back at once. @param chance in [0, 1) */
export function backOffMs(policy: RetryPolicy, tries: number, chance: number): number {
  const doubled = Math.min(policy.maxPauseMs, policy.firstPauseMs * 2 ** Math.min(Math.max(tries - 1, 0), 30));
  return doubled * (0.5 + chance / 2);
}

/** Spread over a forbidden time's end: at most a second more than was asked for. */
export const afterRestMs = (policy: RetryPolicy, restMs: number, tries: number, chance: number): number =>
  restMs + Math.min(backOffMs(policy, tries, chance), 1000) * chance;

/** The limit that a further try at `atMs` would break; null when it may be made. */
export function brokenLimit(policy: RetryPolicy, call: CallSoFar, atMs: number, nowMs: number): Limit | null {
  if (call.tries >= policy.maxTries) return "tries";
  if (atMs - nowMs > policy.maxRetryAfterMs) return "retry-after";
  if (policy.totalMs !== null && atMs - call.startedAtMs >= policy.totalMs) return "total";
  if (policy.outageMs !== null && atMs - call.failingSinceMs > policy.outageMs) return "outage";
  return null;
}
