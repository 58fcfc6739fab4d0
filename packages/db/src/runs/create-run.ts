/** Launching: the row, its first event and its first wake are one write. */
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { newId } from "../new-id.ts";

// The new row is not visible to the rest of its own statement, so its first event is written beside it, not by `eventLog`.
const sql = `
with run as (
  insert into runs (id, name, project, tags, kind, status, config, seed, step_source, steps, wake, next_seq)
  values ($1, $2, $3, $4, $5, 'queued', $6, $7, $8, $9, 1, 2)
  returning id
),
logged as (
  insert into events (run_id, seq, type, body)
  select id, 1, 'run-created', jsonb_build_object('type', 'run-created', 'name', $2::text, 'kind', $5::text) from run
)
select pg_notify('rolldeck_events', json_build_object('runId', id, 'seq', 1)::text) from run`;

/** @param run a config that the catalogue accepted */
export async function createRun(pool: pg.Pool, { config }: { readonly config: RunConfig }): Promise<{ runId: string }> {
  const runId = newId();
  const { name, project, tags, kind, seed, stepSource, budget } = config;
  await pool.query(sql, [runId, name, project, tags, kind, JSON.stringify(config), seed, stepSource, budget.steps]);
  return { runId };
}
