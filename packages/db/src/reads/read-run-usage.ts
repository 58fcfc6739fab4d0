/** What a run has used since it began: the amounts that cost is made of. */
import { z } from "zod";
import { type Queryable, readRow } from "./rows.ts";

const Row = z.object({
  gpuHours: z.number(),
  sandboxHours: z.number(),
  judgeTokens: z.number(),
  hostedPromptTokens: z.number(),
  hostedSampledTokens: z.number(),
  hostedTrainedTokens: z.number(),
  trainedGroups: z.int(),
});
export type StoredUsage = z.infer<typeof Row>;

const hours = (from: string, to: string): string => `greatest(extract(epoch from ${to} - ${from}), 0) / 3600`;

/**
 * A hosted policy's tokens count and no GPU hours; of any other it is the other way round. Attempts that were given up count: they
 * were paid for.
 */
const sql = `
with run as (select id, started_at, ended_at, sampled_tokens, judge_tokens, $2::boolean as hosted from runs where id = $1)
select
  (select coalesce(case when hosted then 0 else ${hours("started_at", "coalesce(ended_at, now())")} end, 0)::float8 from run) as "gpuHours",
  (select coalesce(sum(${hours("s.opened_at", "coalesce(s.closed_at, now())")}), 0)::float8
    from sandboxes s where s.run_id = $1 and s.opened_at is not null) as "sandboxHours",
  (select judge_tokens::float8 from run) as "judgeTokens",
  (select coalesce(sum(t.prompt_tokens), 0)::float8 from run join rollouts r on r.run_id = run.id
    join transitions t on t.rollout_id = r.id where run.hosted) as "hostedPromptTokens",
  (select case when hosted then sampled_tokens else 0 end::float8 from run) as "hostedSampledTokens",
  (select coalesce(sum(m.count), 0)::float8 from run join steps s on s.run_id = run.id and s.state in ('updating', 'done')
    join training_rows t on t.step_id = s.id and t.sent
    cross join lateral (select sum(c) as count from unnest(t.mask) with ordinality as u (c, place) where place % 2 = 1) m
    where run.hosted) as "hostedTrainedTokens",
  (select count(distinct r.group_id)::int from steps s join training_rows t on t.step_id = s.id and t.sent
    join rollouts r on r.id = t.rollout_id where s.run_id = $1 and s.state in ('updating', 'done')) as "trainedGroups"`;

/** @param hosted the policy is not on one of this server's GPU workers. @returns null where there is no such run */
export function readRunUsage(
  db: Queryable,
  { runId, hosted }: { readonly runId: string; readonly hosted: boolean },
): Promise<StoredUsage | null> {
  return readRow(db, Row.nullable(), `select * from (${sql}) u where exists (select from runs where id = $1)`, [
    runId,
    hosted,
  ]);
}
