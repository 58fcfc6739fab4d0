/** What was measured of one policy version: its evaluation, and the rewards of the step that made it. */
import { AnyMetricName } from "@rolldeck/contracts/metrics";
import { type Queryable, readRows } from "@rolldeck/db/reads/rows";
import { z } from "zod";

const MetricAt = z.object({ name: AnyMetricName, step: z.int(), value: z.number() });
export type MetricAt = z.infer<typeof MetricAt>;

/** Finite ones alone: NaN and infinities measure nothing. */
export const metricsAt = (db: Queryable, runId: string, version: number): Promise<MetricAt[]> =>
  readRows(
    db,
    MetricAt,
    `select "name", "step", "value" from "metric_points"
     where "run_id" = $1 and "step" = $2 and ("name" like 'evaluate/%' or "name" like 'reward/%')
       and "value" not in ('NaN', 'Infinity', '-Infinity') order by "name"`,
    [runId, version],
  );
