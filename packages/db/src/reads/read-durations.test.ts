import { Durations } from "@rolldeck/contracts/api/durations";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedRun, seedStep, seedTrajectory } from "../../testing/seed-run.ts";
import { readDurations } from "./read-durations.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();
const ask = { purpose: "train", limit: 100 } as const;

async function seedSpans(runId: string, rolloutId: string, attempt: number, ends: readonly number[]): Promise<void> {
  for (const [place, stage] of (["init", "run", "evaluate"] as const).entries()) {
    // Each waits for a second before it starts.
    const ready = place === 0 ? 0 : (ends[place - 1] ?? 0);
    await database.pool.query(
      `insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at, started_at, ended_at) values ($1, $2, $3, $4, $5, $6, $7)`,
      [rolloutId, attempt, stage, runId, at(ready), at(ready + 1), at(ends[place] ?? 0)],
    );
  }
}

describe("durations", () => {
  it("are those of scored rollouts at the attempt that counts, without waiting", async () => {
    const runId = await seedRun(database.pool);
    const { rolloutIds, stepId } = await seedStep(database.pool, runId, {
      step: 1,
      rollouts: [
        { reward: 1, ending: "answer" },
        { reward: 0, ending: "answer" },
        { reward: null, ending: "sandbox_lost" },
        { reward: 1, ending: "answer" },
      ],
    });
    const [first = "", second = "", failed = "", regraded = ""] = rolloutIds;
    await seedSpans(runId, first, 1, [11, 52, 54]);
    await seedTrajectory(database.pool, first, [
      { origin: "template", text: "ask" },
      { origin: "sampled", text: "answer" },
    ]);
    await seedSpans(runId, second, 1, [5, 6, 7]);
    await seedSpans(runId, second, 2, [21, 23, 30.5]);
    for (const rolloutId of [failed, regraded]) await seedSpans(runId, rolloutId, 1, [2, 3, 4]);
    await database.pool.query(`update rollouts set attempt = 2, sampled_tokens = 40, turns = 3 where id = $1`, [
      second,
    ]);
    await database.pool.query(`update rollouts set evaluate_failures = 1 where id = $1`, [regraded]);
    await database.pool.query(`update rollouts set settled_at = $2 where id = $1`, [first, at(54)]);
    await database.pool.query(`update steps set created_at = $2, update_started_at = $3, ended_at = $4 where id = $1`, [
      stepId,
      at(0),
      at(60),
      at(75),
    ]);
    // Two environments: each rollout's first attempt opened one, and the second attempt of one of them reset the other's.
    for (const [sandboxId, opener] of Object.entries({ a: first, b: second })) {
      await database.pool.query(
        `insert into sandboxes (id, run_id, rollout_id, attempt, purpose, claim, runtime, network, state, environment)
         values ($1, $2, $3, 1, 'agent', 1, 'docker', 'none', 'open', true)`,
        [sandboxId, runId, opener],
      );
    }
    await database.pool.query(
      `insert into sandbox_uses (sandbox_id, place, rollout_id, attempt) values ('a', 1, $1, 1), ('b', 1, $2, 1), ('a', 2, $2, 2)`,
      [first, second],
    );
    const read = Durations.parse(await readDurations(database.pool, { runId, ...ask }));
    expect(read).toEqual({
      runId,
      rollouts: {
        taskSet: [0, 0],
        instanceIndex: [7, 7],
        initMs: [10_000, 20_000],
        reset: [false, true],
        runMs: [40_000, 1_000],
        evaluateMs: [1_000, 6_500],
        modelMs: [12.5, 0],
        sampledTokens: [0, 40],
        turns: [0, 3],
      },
      steps: { step: [1], stepMs: [75_000], updateMs: [15_000] },
    });
    const newest = await readDurations(database.pool, { runId, ...ask, limit: 1 });
    expect(newest.rollouts.initMs).toEqual([20_000]);
    const held = await readDurations(database.pool, { runId, ...ask, purpose: "evaluate" });
    expect(held.rollouts.initMs).toEqual([]);
    expect(held.steps.step).toEqual([]);
  });

  it("of a run that is not there are refused", async () => {
    await expect(readDurations(database.pool, { runId: "nosuchrun", ...ask })).rejects.toBeInstanceOf(NotFoundError);
  });
});
