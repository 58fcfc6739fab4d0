/**
 * Circuit breaker of one endpoint. Pure. Closed: everybody may ask. Open: nobody, until its time is over; from then on one probe
 * per window until one is answered. A probe may take long (it is a sample like any other), so nobody waits for its outcome.
 */
export interface BreakerPolicy {
  /** Failures in a row that open it. */
  readonly threshold: number;
  /** First window; doubles with each failed probe up to `maxOpenMs`. */
  readonly openMs: number;
  readonly maxOpenMs: number;
}
export interface Breaker {
  readonly failures: number;
  /** Windows since it opened; 0 = closed. */
  readonly windows: number;
  /** End of the present window. */
  readonly openUntilMs: number;
}
export const closedBreaker: Breaker = { failures: 0, windows: 0, openUntilMs: 0 };

/** When the endpoint may be asked: now, or the end of the window. */
export const readyAtMs = (breaker: Breaker, nowMs: number): number =>
  breaker.windows === 0 ? nowMs : Math.max(nowMs, breaker.openUntilMs);

/** Somebody asks now (allowed by `readyAtMs`): where it is open, this is the window's probe. */
export const whenAsked = (breaker: Breaker, policy: BreakerPolicy, nowMs: number): Breaker =>
  breaker.windows === 0 ? breaker : { ...breaker, openUntilMs: nowMs + windowMs(policy, breaker.windows) };

/** It answered, whatever it said. */
export const whenAnswered = (): Breaker => closedBreaker;

/** Nobody answered. @param askedAtMs failures of calls sent before it opened are late news and open no further window */
export function whenDown(breaker: Breaker, policy: BreakerPolicy, askedAtMs: number, nowMs: number): Breaker {
  const failures = breaker.failures + 1;
  if (breaker.windows === 0) {
    return failures < policy.threshold
      ? { ...breaker, failures }
      : { failures, windows: 1, openUntilMs: nowMs + windowMs(policy, 1) };
  }
  const probed = askedAtMs >= breaker.openUntilMs - windowMs(policy, breaker.windows);
  if (!probed) return { ...breaker, failures };
  const windows = breaker.windows + 1;
  return { failures, windows, openUntilMs: nowMs + windowMs(policy, windows) };
}

const windowMs = (policy: BreakerPolicy, windows: number): number =>
  Math.min(policy.maxOpenMs, policy.openMs * 2 ** Math.min(windows - 1, 30));
