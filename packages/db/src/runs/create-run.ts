/** Launching: each run's row, its first event and its first wake are one write; several runs are launched by one, or none is. */
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { newId } from "../new-id.ts";

/** A run as `launchedRuns` reads it. */
export interface AskedRun {
  readonly id: string;
  readonly config: RunConfig;
}

/** The parameter of `launchedRuns`. @param runs configs that the catalogue accepted */
export const askedRuns = (runs: readonly AskedRun[]): string =>
  JSON.stringify(
    runs.map(({ id, config }) => {
      const { name, project, tags, kind, seed, stepSource, budget, model } = config;
      const parent = { parent_run_id: model.startFrom?.run ?? null, parent_version: model.startFrom?.version ?? null };
      return { id, name, project, tags, kind, config, seed, step_source: stepSource, steps: budget.steps, ...parent };
    }),
  );

/**
 * CTEs `run` and `logged`, from a parameter of `askedRuns`. A new row is not visible to the rest of its own statement, so its first
 * event is written beside it, not by `eventLog`.
 */
export const launchedRuns = (parameter: string): string => `
run as (
  insert into runs (id, name, project, tags, kind, status, config, seed, step_source, steps, wake, next_seq,
    parent_run_id, parent_version, parent_relation)
  select asked.id, asked.name, asked.project, array(select jsonb_array_elements_text(asked.tags)), asked.kind, 'queued', asked.config,
    asked.seed, asked.step_source, asked.steps, 1, 2, parent.id, asked.parent_version,
    case when parent.id is not null then 'fork' end
  from jsonb_to_recordset(${parameter}::jsonb) as asked (id text, name text, project text, tags jsonb, kind text, config jsonb,
    seed int, step_source text, steps int, parent_run_id text, parent_version int)
  left join runs parent on parent.id = asked.parent_run_id
  returning id, name, kind
),
logged as (
  insert into events (run_id, seq, type, body)
  select id, 1, 'run-created', jsonb_build_object('type', 'run-created', 'name', name, 'kind', kind) from run
)`;

/** To select from `run`: tells whoever listens. */
export const launchNotice = "pg_notify('rolldeck_events', json_build_object('runId', id, 'seq', 1)::text)";

const sql = `with ${launchedRuns("$1")} select ${launchNotice} from run`;

/** @param run a config that the catalogue accepted */
export async function createRun(pool: pg.Pool, { config }: { readonly config: RunConfig }): Promise<{ runId: string }> {
  const runId = newId();
  await pool.query(sql, [askedRuns([{ id: runId, config }])]);
  return { runId };
}
