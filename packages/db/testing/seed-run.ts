/** Rows to read: a run that is over or half over, made directly. Tokens are bytes of text, so tests can read them. */
import type { Ending, MaskReason } from "@rolldeck/contracts/endings";
import { maskReasons } from "@rolldeck/contracts/endings";
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import type { SegmentOrigin } from "@rolldeck/contracts/segments";
import type pg from "pg";
import { encodeLogprobs, encodeTokens } from "../src/hot/token-codec.ts";
import { newId } from "../src/new-id.ts";

export async function seedRun(
  pool: pg.Pool,
  run: {
    readonly config?: Partial<RunConfigInput>;
    readonly status?: RunStatus;
    readonly createdAt?: string;
    readonly endedAt?: string | null;
  } = {},
): Promise<string> {
  const config = RunConfig.parse({ taskSets: [{ name: "key-chain" }], ...run.config });
  const runId = newId();
  await pool.query(
    `insert into runs (id, name, project, tags, kind, status, config, seed, step_source, steps, created_at, ended_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, coalesce($11::timestamptz, now()), $12)`,
    [
      runId,
      config.name,
      config.project,
      config.tags,
      config.kind,
      run.status ?? "running",
      config,
      config.seed,
      config.stepSource,
      config.budget.steps,
      run.createdAt ?? null,
      run.endedAt ?? null,
    ],
  );
  return runId;
}

/** Commits `count` events in one statement, with its notice, as the batch writer does. */
export async function seedEvents(pool: pg.Pool, runId: string, count: number): Promise<void> {
  await pool.query(
    `with head as (update runs set next_seq = next_seq + $2 where id = $1 returning next_seq - $2 as first),
     put as (
       insert into events (run_id, seq, type, body)
       select $1, first + n, 'note', jsonb_build_object('type', 'note', 'level', 'info', 'message', 'event ' || first + n)
       from head, generate_series(0, $2 - 1) n)
     select pg_notify('rolldeck_events', json_build_object('runId', $1::text, 'seq', first + $2 - 1)::text) from head`,
    [runId, count],
  );
}

/** Values by step, from step 1. */
export async function seedMetric(pool: pg.Pool, runId: string, name: string, values: readonly number[]): Promise<void> {
  await pool.query(
    `insert into metric_points (run_id, name, step, value) select $1, $2, n, v from unnest($3::float8[]) with ordinality t(v, n)`,
    [runId, name, values],
  );
}

export interface SeededStep {
  readonly stepId: string;
  readonly groupId: string;
  readonly rolloutIds: readonly string[];
}

/** One step with one group; a rollout per entry. */
export async function seedStep(
  pool: pg.Pool,
  runId: string,
  step: {
    readonly step: number;
    readonly state?: string;
    readonly purpose?: "train" | "evaluate";
    readonly rollouts: readonly { readonly reward: number | null; readonly ending: Ending | null }[];
  },
): Promise<SeededStep> {
  const stepId = newId();
  const purpose = step.purpose ?? "train";
  const state = step.state ?? "done";
  await pool.query(
    `insert into steps (id, run_id, purpose, step, state, source, ended_at)
     values ($1, $2, $3, $4, $5, 'planned', case when $5 = 'done' then now() end)`,
    [stepId, runId, purpose, step.step, state],
  );
  const group = await seedGroup(pool, { runId, stepId, instanceIndex: 7, rollouts: step.rollouts });
  return { stepId, ...group };
}

/** One more group of a step, at the position of its instance. */
export async function seedGroup(
  pool: pg.Pool,
  group: {
    readonly runId: string;
    readonly stepId: string;
    readonly instanceIndex: number;
    readonly taskSet?: number;
    readonly rollouts: readonly { readonly reward: number | null; readonly ending: Ending | null }[];
  },
): Promise<Omit<SeededStep, "stepId">> {
  const { runId, stepId, instanceIndex } = group;
  const groupId = newId();
  await pool.query(
    `insert into groups (id, run_id, step_id, position, task_set, task, split, instance_index, instance_id)
     values ($1, $2, $3, $4::int, $5, 'key-chain', 'train', $4::int, 'train-' || $4::text)`,
    [groupId, runId, stepId, instanceIndex, group.taskSet ?? 0],
  );
  const rolloutIds = group.rollouts.map(() => newId());
  for (const [sample, { reward, ending }] of group.rollouts.entries())
    await pool.query(
      `insert into rollouts (id, run_id, step_id, group_id, sample, seed, stage, state, outcome, ending, reward, success,
         reward_parts, settled_at)
       values ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, $11, $12, case when $7 = 'settled' then now() end)`,
      [
        rolloutIds[sample],
        runId,
        stepId,
        groupId,
        sample,
        ending === null ? "run" : "evaluate",
        ending === null ? "active" : "settled",
        ending === null ? null : reward === null ? "failed" : "completed",
        ending,
        reward,
        reward === null ? null : reward > 0,
        reward === null ? null : { answer: reward },
      ],
    );
  await pool.query(`insert into attempts (rollout_id, attempt) select unnest($1::text[]), 1`, [rolloutIds]);
  return { groupId, rolloutIds };
}

export interface SeededSegment {
  readonly origin: SegmentOrigin;
  readonly text: string;
}

const bytes = (text: string): number[] => [...Buffer.from(text)];

/** A trajectory of one attempt: each sampled segment ends a turn whose prompt is all that came before. */
export async function seedTrajectory(
  pool: pg.Pool,
  rolloutId: string,
  segments: readonly SeededSegment[],
  options: { readonly attempt?: number; readonly call?: { readonly output: string } } = {},
): Promise<void> {
  const attempt = options.attempt ?? 1;
  let start = 0;
  let turn = 0;
  for (const [index, { origin, text }] of segments.entries()) {
    const tokens = bytes(text);
    const logprobs = origin === "sampled" ? encodeLogprobs(tokens.map((_, at) => (at === 0 ? null : -0.5))) : null;
    await pool.query(
      `insert into segments (rollout_id, attempt, index, origin, length, tokens, logprobs, policy_version)
       values ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [rolloutId, attempt, index, origin, tokens.length, encodeTokens(tokens), logprobs, logprobs ? 3 : null],
    );
    if (origin === "sampled") {
      await pool.query(
        `insert into transitions (rollout_id, attempt, turn, claim, prompt_ranges, prompt_tokens, sampled_segment,
           sampled_tokens, stop_reason, policy_version, cache_hit_tokens, sample_ms)
         values ($1, $2, $3, 1, $4, $5, $6, $7, 'stop', 3, 0, 12.5)`,
        [rolloutId, attempt, turn, [0, start], start, index, tokens.length],
      );
      if (options.call)
        await pool.query(
          `insert into tool_calls (rollout_id, attempt, turn, index, name, arguments, raw, state, output, duration_ms)
           values ($1, $2, $3, 0, 'get', '{"key": "a"}', 'get("a")', 'ended', $4, 1.5)`,
          [rolloutId, attempt, turn, options.call.output],
        );
      turn++;
    }
    start += tokens.length;
  }
}

/** A training row over the whole trajectory [0, length). */
export async function seedTrainingRow(
  pool: pg.Pool,
  row: {
    readonly runId: string;
    readonly stepId: string;
    readonly rolloutId: string;
    readonly row: number;
    readonly ranges: readonly number[];
    readonly mask: readonly { readonly count: number; readonly reason: MaskReason | null }[];
    readonly advantage: number;
    readonly sent?: boolean;
    readonly trainerLogprobs?: readonly (number | null)[];
  },
): Promise<void> {
  const mask = row.mask.flatMap(({ count, reason }) => [count, reason === null ? -1 : maskReasons.indexOf(reason)]);
  await pool.query(
    `insert into training_rows (step_id, row, run_id, rollout_id, attempt, ranges, mask, advantage, scale, sent, trainer_logprobs)
     values ($1, $2, $3, $4, 1, $5, $6, $7, 0.1, $8, $9)`,
    [
      row.stepId,
      row.row,
      row.runId,
      row.rolloutId,
      row.ranges,
      mask,
      row.advantage,
      row.sent ?? true,
      row.trainerLogprobs ? encodeLogprobs(row.trainerLogprobs) : null,
    ],
  );
}
