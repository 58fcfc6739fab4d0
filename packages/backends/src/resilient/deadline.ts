/** Signals and pauses of one call. Listeners are taken off again: a rollout's signal outlives thousands of calls. */
import { setTimeout as sleep } from "node:timers/promises";

/** @throws the signal's reason */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  } catch (cause) {
    throw signal?.aborted ? signal.reason : cause;
  }
}

export class TryTimeout extends Error {
  override readonly name = "TryTimeout";
}

/** Runs `work` with a signal that aborts with the caller's, or with a TryTimeout after `ms`; null = no limit. */
export async function withDeadline<T>(
  ms: number | null,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (ms === null) return work(signal);
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(
    () => controller.abort(new TryTimeout(`no answer within ${Math.round(ms) / 1000} s`)),
    Math.min(Math.max(ms, 0), 2 ** 31 - 1),
  );
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
