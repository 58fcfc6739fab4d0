/** What the workers' sweep and the stages ask of the sandboxes' rows. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import { sandboxRuntimes } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { heldReason } from "../hot/kept-sandboxes.ts";
import { type Queryable, readRow, readRows } from "./rows.ts";

const LiveSandbox = z.object({
  id: z.string(),
  runtime: z.enum(sandboxRuntimes),
  state: z.enum(["opening", "open", "kept"]),
  rolloutId: z.string(),
  /** Why it is to be closed now; null while it is in use. */
  due: z.string().nullable(),
  /** Somebody asked to look into it: then what is due is kept instead. */
  keep: z.boolean(),
  /** Seconds since its row was written. */
  ageS: z.number(),
});
export type LiveSandbox = z.infer<typeof LiveSandbox>;

/**
 * A sandbox is due when nothing can come of it any more: its attempt is over, or the stage that it serves has passed to somebody who
 * opened, or will open, another.
 */
const liveSql = `
select s.id, s.runtime, s.state, s.rollout_id as "rolloutId", coalesce(s.keep_until > now() and s.state = 'open', false) as keep,
  extract(epoch from now() - s.created_at)::float8 as "ageS",
  case
    when s.state = 'kept' then case
      when s.keep_until <= now() then 'it was kept as long as asked'
      when s.reason = '${heldReason}' and (r.state = 'settled' or s.attempt <> r.attempt) then 'its rollout is over' end
    when s.attempt <> r.attempt then 'another attempt was begun'
    when r.state = 'settled' then 'its rollout is over'
    when s.purpose = 'grade' and (r.stage <> 'evaluate' or r.claim <> s.claim) then 'its grading is over'
    when s.purpose = 'agent' and r.stage = 'evaluate' and not s.in_place then 'its agent is done'
    when s.purpose = 'agent' and r.stage = 'init' and r.claim <> s.claim then 'another worker sets up'
    when s.purpose = 'agent' and exists (
      select from sandboxes o where o.rollout_id = s.rollout_id and o.attempt = s.attempt and o.purpose = 'agent'
        and o.claim > s.claim and o.state = 'open') then 'another one took its place'
  end as due
from sandboxes s join rollouts r on r.id = s.rollout_id
where s.state in ('opening', 'open', 'kept')
order by s.created_at`;

export const liveSandboxes = (db: Queryable): Promise<LiveSandbox[]> => readRows(db, LiveSandbox, liveSql);

const AgentSandbox = z.object({ id: z.string(), runtime: z.enum(sandboxRuntimes), keep: z.boolean() });
const agentSql = `
select id, runtime, coalesce(keep_until > now(), false) as keep from sandboxes
where rollout_id = $1 and attempt = $2 and purpose = 'agent' and state = 'open' order by claim desc limit 1`;

/** The one an attempt's agent works in; null where it has none. */
export const agentSandbox = (
  db: Queryable,
  rolloutId: string,
  attempt: number,
): Promise<z.infer<typeof AgentSandbox> | null> => readRow(db, AgentSandbox, agentSql, [rolloutId, attempt]);

/** Told apart from other databases on the hosts that sandboxes run on. */
export async function readDeployment(db: Queryable): Promise<string> {
  const row = await readRow(db, z.object({ deployment: z.string() }), "select deployment from rolldeck_marker");
  if (row === null) throw new NotFoundError("marker", "of this database");
  return row.deployment;
}
