/** Metric points. A curve is single-valued: a later write of the same step replaces. NaN and infinities are kept apart. */
import type { AnyMetricName } from "@rolldeck/contracts/metrics";
import type pg from "pg";
import { eventLog } from "../hot/event-log.ts";

export type Metrics = Readonly<Partial<Record<AnyMetricName, number>>>;

/** Names and values as two array parameters. */
export function metricColumns(metrics: Metrics): [string[], number[]] {
  const points = Object.entries(metrics).filter((point): point is [string, number] => point[1] !== undefined);
  return [points.map(([name]) => name), points.map(([, value]) => value)];
}

/** CTE `put_points` from a select of (run_id, step) and the two parameters. */
export const putPoints = (of: string, names: string, values: string): string => `
put_points as (
  insert into metric_points (run_id, name, step, value)
  select o.run_id, p.name, o.step, p.value from (${of}) o, unnest(${names}::text[], ${values}::float8[]) as p (name, value)
  on conflict (run_id, name, step) do update set value = excluded.value, at = now()
  returning 1
)`;

const sql = `
with ${putPoints("select $1::text as run_id, $2::int as step", "$3", "$4")},
happened as materialized (
  select 1 as ord, $1::text as run_id, 'metrics-written' as type, null::text as rollout_id,
    jsonb_build_object('type', 'metrics-written', 'step', $2::int, 'names', (select count(*) from put_points)) as body
),
${eventLog()}
select count(sent) from notified`;

/** Points of one step, with the event that charts wait for. */
export async function writeMetrics(pool: pg.Pool, runId: string, step: number, metrics: Metrics): Promise<void> {
  await pool.query(sql, [runId, step, ...metricColumns(metrics)]);
}
