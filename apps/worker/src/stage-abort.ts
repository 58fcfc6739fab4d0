/**
 * Why a worker stops acting on a claim. The reason travels as the AbortSignal's `reason`, so whoever catches the abort knows
 * what may still be written: after `fenced` and `run-ended` nothing, after the others one edge that gives the claim back.
 */
export const abortKinds = ["fenced", "run-ended", "hand-back", "deadline"] as const;
export type AbortKind = (typeof abortKinds)[number];

export class StageAbort extends Error {
  override readonly name = "StageAbort";
  constructor(
    readonly kind: AbortKind,
    message: string,
  ) {
    super(message);
  }
}

/** The StageAbort behind an aborted signal; a foreign reason counts as fenced, because then nothing may be written. */
export function abortOf(signal: AbortSignal): StageAbort | null {
  if (!signal.aborted) return null;
  return signal.reason instanceof StageAbort ? signal.reason : new StageAbort("fenced", String(signal.reason));
}
