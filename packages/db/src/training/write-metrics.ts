import type { MetricName } from "@rolldeck/contracts/metrics";
import type pg from "pg";

/** Points of one step; a later write of the same step replaces. Used for evaluation steps. */
export function writeMetrics(
  _pool: pg.Pool,
  _runId: string,
  _step: number,
  _metrics: Readonly<Partial<Record<MetricName, number>>>,
): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
