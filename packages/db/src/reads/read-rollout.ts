/** One rollout's page: where it stands, its group, its attempts, its fate in training. No token arrays. */
import { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import { endingNames } from "@rolldeck/contracts/endings";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { rolloutOutcomes, rolloutStates, stages, stepStates } from "@rolldeck/contracts/lifecycle";
import { setAsideReasons } from "@rolldeck/contracts/plan";
import { z } from "zod";
import { readAttemptRef } from "./attempt-ref.ts";
import { finite, iso, type Queryable, readRow, readRows } from "./rows.ts";
import { readLayout, totalTokens } from "./segment-layout.ts";
import { type AnnotatedRow, readAnnotatedRows } from "./training-annotations.ts";

const Row = z.object({
  rolloutId: z.string(),
  runId: z.string(),
  runName: z.string(),
  step: z.int(),
  purpose: z.enum(["train", "evaluate"]),
  stepState: z.enum(stepStates),
  taskSet: z.string(),
  instanceId: z.string(),
  groupId: z.string(),
  sample: z.int(),
  stage: z.enum(stages),
  state: z.enum(rolloutStates),
  outcome: z.enum(rolloutOutcomes).nullable(),
  ending: z.enum(endingNames).nullable(),
  reason: z.string().nullable(),
  reward: z.number().nullable(),
  rewardParts: z.record(z.string(), z.union([z.number(), z.string()])).nullable(),
  success: z.boolean().nullable(),
  finalAnswer: z.string().nullable(),
  flags: z.array(z.string()),
  held: z.boolean(),
  setAside: z.enum(setAsideReasons).nullable(),
  firstVersion: z.int().nullable(),
  attempt: z.int(),
  createdAt: z.string(),
  settledAt: z.string().nullable(),
});
type Row = z.infer<typeof Row>;

/** @param attempt whose tokens, versions and fate are shown; absent: the one that counts. @throws NotFoundError */
export async function readRollout(db: Queryable, rolloutId: string, attempt?: number): Promise<RolloutDetail> {
  const row = await readRow(db, Row, rolloutSql, [rolloutId]);
  if (!row) throw new NotFoundError("rollout", rolloutId);
  const ref = await readAttemptRef(db, rolloutId, attempt);
  const layout = await readLayout(db, rolloutId, ref.attempt);
  const tokensOf = (origin: string) => totalTokens(layout.filter((segment) => segment.origin === origin));
  const { stepState, ...facts } = row;
  return {
    ...facts,
    rewardParts: row.rewardParts ?? {},
    siblings: await readSiblings(db, row.groupId),
    attempts: await readAttempts(db, rolloutId),
    fate: fateOf(row, ref.attempt, await readAnnotatedRows(db, rolloutId, ref.attempt)),
    policyVersions: [...new Set(layout.flatMap((segment) => segment.policyVersion ?? []))].sort((a, b) => a - b),
    tokens: {
      sampled: tokensOf("sampled"),
      observation: tokensOf("observation"),
      template: tokensOf("template"),
      hint: tokensOf("hint"),
      total: totalTokens(layout),
    },
    spans: await readSpans(db, rolloutId),
  };
}

const rolloutSql = `
  select o."id" as "rolloutId", o."run_id" as "runId", r."name" as "runName", s."step", s."purpose",
    s."state" as "stepState", g."task" as "taskSet", g."instance_id" as "instanceId", g."id" as "groupId", o."sample",
    o."stage", o."state", o."outcome", o."ending", o."reason", ${finite('o."reward"')} as "reward",
    o."reward_parts" as "rewardParts", o."success", o."final_answer" as "finalAnswer", o."flags", o."attempt",
    o."held" or g."held" as "held", g."set_aside" as "setAside", o."first_version" as "firstVersion",
    ${iso('o."created_at"')} as "createdAt", ${iso('o."settled_at"')} as "settledAt"
  from "rollouts" o join "runs" r on r."id" = o."run_id" join "steps" s on s."id" = o."step_id"
    join "groups" g on g."id" = o."group_id"
  where o."id" = $1`;

const readSiblings = (db: Queryable, groupId: string) =>
  readRows(
    db,
    RolloutDetail.shape.siblings.element,
    `select "id" as "rolloutId", "sample", ${finite('"reward"')} as "reward", "success", "ending" from "rollouts"
     where "group_id" = $1 order by "sample"`,
    [groupId],
  );

const readAttempts = (db: Queryable, rolloutId: string) =>
  readRows(
    db,
    RolloutDetail.shape.attempts.element,
    `select a."attempt", ${iso('a."started_at"')} as "startedAt", ${iso('a."ended_at"')} as "endedAt", a."reason",
       (select count(*)::int from "transitions" t where t."rollout_id" = a."rollout_id" and t."attempt" = a."attempt")
         as "turns"
     from "attempts" a where a."rollout_id" = $1 order by a."attempt"`,
    [rolloutId],
  );

const readSpans = (db: Queryable, rolloutId: string) =>
  readRows(
    db,
    RolloutDetail.shape.spans.element,
    `select "stage", "attempt", ${iso('"ready_at"')} as "queuedAt", ${iso('"started_at"')} as "startedAt",
       ${iso('"ended_at"')} as "endedAt", "worker_id" as "workerId"
     from "stage_spans" where "rollout_id" = $1 order by "attempt", "ready_at"`,
    [rolloutId],
  );

/** Trained, masked (with the commonest reason), still to come, or never. Pure. */
export function fateOf(row: Row, attempt: number, rows: readonly AnnotatedRow[]): RolloutDetail["fate"] {
  const none = { advantage: null, rows: rows.length };
  if (attempt < row.attempt) return { state: "not-trained", reason: "a later attempt counts", ...none };
  if (row.purpose === "evaluate") return { state: "not-trained", reason: "evaluation", ...none };
  const sent = rows.filter((one) => one.sent && one.mask.some(({ reason, count }) => reason === null && count > 0));
  const [first] = sent;
  if (first) {
    const done = first.stepState === "done";
    return { state: done ? "trained" : "pending", reason: null, advantage: first.advantage, rows: rows.length };
  }
  if (rows.length > 0) {
    const reason = commonestReason(rows) ?? "zero-variance";
    return { state: "masked", reason, advantage: rows[0]?.advantage ?? null, rows: rows.length };
  }
  if (row.setAside !== null)
    return { state: "not-trained", reason: `its group was set aside: ${row.setAside}`, ...none };
  const open = row.stepState === "gathering" || row.stepState === "updating";
  return open
    ? { state: "pending", reason: null, ...none }
    : { state: "not-trained", reason: row.ending ?? `the step was ${row.stepState}`, ...none };
}

/** Reasons that every row has: what was not sampled, and what another row was made for. */
const context: readonly string[] = ["template", "observation", "hint", "other-row"];

/** The reason that masks most of the policy's own tokens. */
function commonestReason(rows: readonly AnnotatedRow[]): string | null {
  const counts = new Map<string, number>();
  for (const { reason, count } of rows.flatMap((row) => row.mask))
    if (reason !== null && !context.includes(reason)) counts.set(reason, (counts.get(reason) ?? 0) + count);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
