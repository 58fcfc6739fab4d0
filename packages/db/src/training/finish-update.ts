import type { MetricName } from "@rolldeck/contracts/metrics";
import type pg from "pg";

export interface FinishedUpdate {
  readonly runId: string;
  readonly stepId: string;
  readonly claim: number;
  /** Version that serves now. */
  readonly version: number;
  readonly bootId: string;
  readonly samplingSessionId: string;
  /** Points of this step; NaN and infinities are kept as they are. */
  readonly metrics: Readonly<Partial<Record<MetricName, number>>>;
}
/** Step done, version serving, run.step, points, events and wake in one write; repeating it changes nothing. @throws FencedError */
export function finishUpdate(_pool: pg.Pool, _update: FinishedUpdate): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
