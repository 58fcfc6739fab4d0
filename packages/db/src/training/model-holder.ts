/**
 * Who may write what a run's weights are: the prepare job, the update job of a step, or, of a run that is over, whoever saves its last
 * version. Invariant: a run's checkpoints change only under the lock of the run's row, which is taken before theirs.
 */
import { FencedError } from "@rolldeck/contracts/errors";
import type pg from "pg";

/** Who sends training requests. */
export type TrainerHolder =
  | { readonly kind: "prepare"; readonly runId: string; readonly claim: number }
  | { readonly kind: "update"; readonly runId: string; readonly stepId: string; readonly claim: number };

/** `claim`: of the prepare job that made the model. Once the run is set back or its model made again, it no longer holds. */
export interface EndedHolder {
  readonly kind: "ended";
  readonly runId: string;
  readonly modelId: string;
  readonly claim: number;
}
export type ModelHolder = TrainerHolder | EndedHolder;

const lockedRun = (condition: string): string => `held as materialized (
  select r.id as run_id from runs r where r.id = $1 and ${condition} for no key update
)`;

const heldSql: Readonly<Record<ModelHolder["kind"], string>> = {
  prepare: lockedRun("r.id = $3 and r.prepare_claim = $2 and r.prepare_worker_id is not null"),
  update: `held_step as materialized (
  select s.run_id from steps s where s.id = $3 and s.run_id = $1 and s.claim = $2 and s.state = 'updating' and s.worker_id is not null
  for no key update
),
${lockedRun("exists (select from held_step)")}`,
  ended: lockedRun("r.model_id = $3 and r.prepare_claim = $2 and r.ended_at is not null"),
};

/** CTE `held` (run_id): the run's row, locked, as long as the holder's claim stands; else none. Its parameters are $1 to $3. */
export function heldRun(holder: ModelHolder): { readonly sql: string; readonly values: [string, number, string] } {
  return { sql: heldSql[holder.kind], values: [holder.runId, holder.claim, subjectOf(holder)] };
}

/** @param statement selects `held` @throws FencedError when the holder's claim is lost */
export async function whileHeld(
  client: Pick<pg.Pool, "query">,
  holder: ModelHolder,
  statement: string,
  values: unknown[],
): Promise<void> {
  const { rows } = await client.query<{ held: boolean }>(statement, values);
  if (!rows[0]?.held) throw new FencedError(`the model of run ${holder.runId}`);
}

/** What was claimed: a run's model, a step, or the model that is put away. */
function subjectOf(holder: ModelHolder): string {
  if (holder.kind === "update") return holder.stepId;
  return holder.kind === "ended" ? holder.modelId : holder.runId;
}
