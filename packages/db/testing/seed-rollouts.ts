/** Rows to write to: a run with one step whose rollouts a worker holds (or wait), made directly, without planner and queue. */
import type { RolloutState, Stage } from "@rolldeck/contracts/lifecycle";
import { RunConfig } from "@rolldeck/contracts/run-config";
import type { Segment, TurnRecord } from "@rolldeck/contracts/segments";
import type pg from "pg";
import type { TurnEntry } from "../src/hot/entries.ts";
import { newId } from "../src/new-id.ts";

export interface SeededRollout {
  readonly runId: string;
  readonly rolloutId: string;
  readonly attempt: number;
  readonly claim: number;
}
export interface SeededRun {
  readonly runId: string;
  readonly stepId: string;
  readonly rollouts: readonly SeededRollout[];
}

export const testConfig = RunConfig.parse({ name: "test", taskSets: [{ name: "key-chain" }] });

export async function seedRollouts(
  pool: pg.Pool,
  options: {
    readonly count: number;
    readonly stage?: Stage;
    readonly state?: RolloutState;
    readonly groupSize?: number;
  },
): Promise<SeededRun> {
  const { count, stage = "run", state = "active", groupSize = 8 } = options;
  const [runId, stepId] = [newId(), newId()];
  await pool.query(
    `insert into runs (id, name, project, tags, kind, status, config, seed, step_source, steps, started_at)
     values ($1, 'test', 'default', '{}', 'train', 'running', $2, 0, 'planned', 10, now())`,
    [runId, testConfig],
  );
  await pool.query(
    "insert into steps (id, run_id, purpose, step, state, source) values ($1, $2, 'train', 1, 'gathering', 'planned')",
    [stepId, runId],
  );
  const groups = Array.from({ length: Math.ceil(count / groupSize) }, () => newId());
  await pool.query(
    `insert into groups (id, run_id, step_id, position, task_set, task, split, instance_index, instance_id)
     select id, $2, $3, place - 1, 0, 'key-chain', 'train', place, 'train-' || place from unnest($1::text[]) with ordinality g (id, place)`,
    [groups, runId, stepId],
  );
  const rollouts = Array.from({ length: count }, () => ({ runId, rolloutId: newId(), attempt: 1, claim: 1 }));
  await pool.query(
    `insert into rollouts (id, run_id, step_id, group_id, sample, seed, stage, state, claim, worker_id, lease_until, stage_started_at)
     select id, $2, $3, ($4::text[])[1 + (place - 1) / $5], (place - 1) % $5, place, $6, $7, 1, 'w1', now() + interval '15 s', now()
     from unnest($1::text[]) with ordinality r (id, place)`,
    [rollouts.map((rollout) => rollout.rolloutId), runId, stepId, groups, groupSize, stage, state],
  );
  await pool.query(`insert into attempts (rollout_id, attempt) select id, 1 from rollouts where run_id = $1`, [runId]);
  await pool.query(
    `insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at, started_at, worker_id)
     select id, 1, stage, run_id, now(), now(), 'w1' from rollouts where run_id = $1`,
    [runId],
  );
  return { runId, stepId, rollouts };
}

/** A turn as an agent commits it: an observation segment, then the sampled one, with one call. */
export function turnEntry(
  rollout: SeededRollout,
  turn: number,
  options: { readonly observation?: number; readonly sampled?: number } = {},
): TurnEntry {
  const { observation = 50, sampled = 40 } = options;
  const tokens = (count: number): number[] =>
    Array.from({ length: count }, (_, place) => (place * 31 + turn) % 151_936);
  const segments: Segment[] = [
    { index: turn * 2, origin: "observation", tokens: tokens(observation), logprobs: null, policyVersion: null },
    {
      index: turn * 2 + 1,
      origin: "sampled",
      tokens: tokens(sampled),
      logprobs: tokens(sampled).map((token) => -token / 151_936),
      policyVersion: 0,
    },
  ];
  const record: TurnRecord = {
    turn,
    promptRanges: [{ start: 0, end: turn * (observation + sampled) + observation }],
    promptTokens: turn * (observation + sampled) + observation,
    sampledSegment: turn * 2 + 1,
    sampledTokens: sampled,
    stopReason: "stop",
    policyVersion: 0,
    cacheHitTokens: 0,
    sampleMs: 12.5,
    parseError: null,
    thread: "",
    notes: [],
    nextRanges: null,
    calls: [{ index: 0, name: "get", arguments: { key: "a" }, raw: 'get("a")' }],
  };
  return { kind: "turn", ...rollout, turn: record, segments };
}
