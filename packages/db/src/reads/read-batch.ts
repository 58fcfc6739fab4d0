/**
 * The rows that a step's update trains, in the neutral form, a bounded number at a time. Invariants: nothing is computed anew,
 * every number is the stored one; a row that does not keep the schema's promises is never handed out.
 */
import { BatchRow } from "@rolldeck/contracts/batch-row";
import { endingNames } from "@rolldeck/contracts/endings";
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { stepStates } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { z } from "zod";
import { readRowsOfStep, type StoredTrainingRow } from "../training/training-rows.ts";
import { readRunStatus } from "./read-run-status.ts";
import { finite, readRow, readRows } from "./rows.ts";

export interface BatchRange {
  readonly runId: string;
  readonly step: number;
  /** Only later rows. */
  readonly after: number;
  readonly limit: number;
}
export interface BatchQuery extends BatchRange {
  /** The rows end before the one that would pass it; one row always fits. */
  readonly maxTokens: number;
}
export interface BatchRows {
  readonly rows: readonly BatchRow[];
  /** Number of the last row where more follow; else null. */
  readonly next: number | null;
}

/** How much a range holds. @throws NotFoundError, ConflictError where the step has no rows */
export async function measureBatch(
  pool: pg.Pool,
  range: BatchRange,
): Promise<{ readonly rows: number; readonly tokens: number; readonly next: number | null }> {
  const step = await readStep(pool, range.runId, range.step);
  const sizes = await readSizes(pool, step.stepId, range.after, range.limit);
  const own = sizes.slice(0, range.limit);
  const tokens = own.reduce((sum, size) => sum + size.tokens, 0);
  return { rows: own.length, tokens, next: own.length < sizes.length ? (own.at(-1)?.row ?? null) : null };
}

/** @throws NotFoundError, ConflictError where the step has no rows */
export async function readBatch(pool: pg.Pool, query: BatchQuery): Promise<BatchRows> {
  const step = await readStep(pool, query.runId, query.step);
  const sizes = await readSizes(pool, step.stepId, query.after, query.limit);
  const fitting = fit(sizes.slice(0, query.limit), query.maxTokens);
  const first = fitting[0];
  const last = fitting.at(-1);
  if (first === undefined || last === undefined) return { rows: [], next: null };
  const stored = await readRowsOfStep(pool, step.stepId, first.row, last.row);
  const rollouts = await readRollouts(pool, [...new Set(stored.map(({ rolloutId }) => rolloutId))]);
  const facts = { runId: query.runId, step: query.step, learnerVersion: step.learnerVersion };
  const rows = stored.map((row) => batchRow(row, rollouts.get(row.rolloutId), facts));
  return { rows, next: fitting.length < sizes.length ? last.row : null };
}

const withoutRows = (step: number, state: (typeof stepStates)[number]): string => {
  const why = {
    gathering: "it is still gathering rollouts",
    updating: "its update has not stored them yet",
    done: "it ended without an update of this server",
    cancelled: "it was cancelled",
    failed: "it failed",
  } as const;
  return `step ${step} has no training rows: ${why[state]}`;
};

const Step = z.object({
  stepId: z.string(),
  state: z.enum(stepStates),
  hasRows: z.boolean(),
  learnerVersion: z.int(),
});

// A version has the number of the step that made it. What a step that failed would have sent is no batch.
const stepSql = `select s.id as "stepId", s.state,
    s.state in ('updating', 'done') and exists (select from training_rows t where t.step_id = s.id) as "hasRows",
    (select coalesce(max(d.step), 0) from steps d where d.run_id = s.run_id and d.purpose = 'train' and d.source = 'planned'
      and d.state = 'done' and d.step < s.step) as "learnerVersion"
  from steps s where s.run_id = $1 and s.purpose = 'train' and s.step = $2`;

async function readStep(pool: pg.Pool, runId: string, step: number): Promise<z.infer<typeof Step>> {
  const found = await readRow(pool, Step, stepSql, [runId, step]);
  if (found?.hasRows === false) throw new ConflictError(withoutRows(step, found.state));
  if (found !== null) return found;
  if ((await readRunStatus(pool, runId)) === null) throw new NotFoundError("run", runId);
  throw new NotFoundError("step", String(step));
}

const Size = z.object({ row: z.int(), tokens: z.int() });

/** One more than asked for, so that it is known whether more follow. */
const readSizes = (pool: pg.Pool, stepId: string, after: number, limit: number): Promise<z.infer<typeof Size>[]> =>
  readRows(
    pool,
    Size,
    `select t.row, (select sum(m.count) from unnest(t.mask) with ordinality as m (count, place) where m.place % 2 = 1)::int as tokens
     from training_rows t where t.step_id = $1 and t.row > $2 order by t.row limit $3`,
    [stepId, after, limit + 1],
  );

function fit(sizes: readonly z.infer<typeof Size>[], maxTokens: number): readonly z.infer<typeof Size>[] {
  let tokens = 0;
  const end = sizes.findIndex((size, place) => {
    tokens += size.tokens;
    return tokens > maxTokens && place > 0;
  });
  return end === -1 ? sizes : sizes.slice(0, end);
}

const Rollout = z.object({
  rolloutId: z.string(),
  groupId: z.string(),
  task: z.string(),
  instanceId: z.string(),
  sample: z.int(),
  ending: z.enum(endingNames),
  reward: z.number().nullable(),
});
type Rollout = z.infer<typeof Rollout>;

async function readRollouts(pool: pg.Pool, ids: readonly string[]): Promise<Map<string, Rollout>> {
  const rows = await readRows(
    pool,
    Rollout,
    `select r.id as "rolloutId", g.id as "groupId", g.task, g.instance_id as "instanceId", r.sample, r.ending,
       ${finite("r.reward")} as reward
     from rollouts r join groups g on g.id = r.group_id where r.id = any($1)`,
    [ids],
  );
  return new Map(rows.map((row) => [row.rolloutId, row]));
}

/** -Infinity and NaN are no logprobs: a token that has one is not trained, and here it has none. */
const known = (logprobs: readonly (number | null)[]): (number | null)[] =>
  logprobs.map((logprob) => (logprob !== null && Number.isFinite(logprob) ? logprob : null));

function batchRow(
  stored: StoredTrainingRow,
  rollout: Rollout | undefined,
  facts: Pick<BatchRow, "runId" | "step" | "learnerVersion">,
): BatchRow {
  const { correction, trainerLogprobs, refLogprobs } = stored;
  const row = BatchRow.safeParse({
    ...facts,
    ...rollout,
    row: stored.row,
    rolloutId: stored.rolloutId,
    attempt: stored.attempt,
    advantage: stored.advantage,
    scale: stored.scale,
    sent: stored.sent,
    tokens: stored.tokens,
    mask: correction?.mask ?? stored.mask,
    samplerLogprobs: known(stored.logprobs),
    trainerLogprobs: trainerLogprobs && known(trainerLogprobs),
    refLogprobs: refLogprobs && known(refLogprobs),
    tokenWeights: correction?.tokenWeights ?? null,
    policyVersions: stored.versions,
  });
  if (row.success) return row.data;
  // Not the caller's fault: what is stored contradicts itself.
  const [issue] = row.error.issues;
  throw new RangeError(`row ${stored.row} of step ${facts.step}: ${issue?.path.join(".")}: ${issue?.message}`);
}
