/**
 * Steps, groups and rollouts that a person holds back from their next stage. What a worker has comes to the end of its stage; held
 * is held until somebody lets it go, whatever restarts meanwhile. A step is held by its groups.
 */
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { z } from "zod";
import { eventLog } from "./event-log.ts";

export type Part = "step" | "group" | "rollout";

/** What $1 is and whether anything can still come of it. The step's row is locked first, as by whoever moves its groups. */
const target: Record<Part, string> = {
  step: `select id, run_id, state in ('gathering', 'updating') as open from steps where id = $1 for no key update`,
  group: `select g.id, g.run_id, s.state in ('gathering', 'updating') and g.set_aside is null as open
    from groups g join steps s on s.id = g.step_id where g.id = $1 for no key update of s`,
  rollout: `select id, run_id, state <> 'settled' as open from rollouts where id = $1 for no key update`,
};
const change: Record<Part, string> = {
  step: `update groups g set held = $2 from part p where g.step_id = p.id and p.open and g.set_aside is null and g.held <> $2`,
  group: `update groups g set held = $2 from part p where g.id = p.id and p.open and g.held <> $2`,
  rollout: `update rollouts g set held = $2 from part p where g.id = p.id and p.open and g.held <> $2`,
};

const sql = (part: Part): string => `
with part as materialized (${target[part]}),
changed as (${change[part]} returning g.id),
happened as materialized (
  select 1 as ord, run_id, 'hold-changed' as type, case when $4 = 'rollout' then id end as rollout_id,
    jsonb_build_object('type', 'hold-changed', 'part', $4::text, 'id', id, 'held', $2::boolean, 'by', $3::text) as body
  from part where (select count(*) from changed) > 0
),
${eventLog({ wakes: "true" })}
select run_id as "runId", open, (select count(sent) from notified) as notified from part`;

const Row = z.object({ runId: z.string(), open: z.boolean() });

/**
 * Once for all that ask alike; letting go what is over changes nothing.
 * @param by who asks, for the run's log @throws NotFoundError, ConflictError where nothing is left to hold
 */
export async function holdPart(
  pool: pg.Pool,
  asked: { readonly part: Part; readonly id: string; readonly held: boolean; readonly by: string },
): Promise<{ runId: string }> {
  const { part, id, held, by } = asked;
  const { rows } = await pool.query(sql(part), [id, held, by, part]);
  if (rows.length === 0) throw new NotFoundError(part, id);
  const { runId, open } = Row.parse(rows[0]);
  if (held && !open) throw new ConflictError(`The ${part} is over: there is nothing left of it to hold.`);
  return { runId };
}
