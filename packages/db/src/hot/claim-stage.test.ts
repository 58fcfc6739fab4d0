import { FencedError } from "@rolldeck/contracts/errors";
import { EventBody } from "@rolldeck/contracts/events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { type SeededRollout, seedRollouts, turnEntry } from "../../testing/seed-rollouts.ts";
import { createPool } from "../connect.ts";
import { BatchWriter } from "./batch-writer.ts";
import { claimStage } from "./claim-stage.ts";
import { readTrajectory } from "./read-trajectory.ts";
import { renewLeases } from "./renew-leases.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const request = (rollout: SeededRollout, workerId = "w1") => ({ ...rollout, stage: "run" as const, workerId });
const expire = (rollout: SeededRollout) =>
  database.pool.query("update rollouts set lease_until = now() - interval '1 second' where id = $1", [
    rollout.rolloutId,
  ]);

test("of many that take one queued stage, in one process or two, one gets it, with its event (fault 41)", async () => {
  const run = await seedRollouts(database.pool, { count: 20, state: "queued" });
  const other = createPool(database.url);
  const claims = await Promise.all(
    run.rollouts.flatMap((rollout) => [
      claimStage(database.pool, request(rollout, "w1")),
      claimStage(database.pool, request(rollout, "w1")),
      claimStage(other, request(rollout, "w2")),
    ]),
  );
  for (let place = 0; place < 20; place++) {
    const mine = claims.slice(place * 3, place * 3 + 3).filter((claim) => claim !== null);
    expect(mine).toHaveLength(1);
    expect(mine[0]).toMatchObject({
      claim: 2,
      runId: run.runId,
      task: "key-chain",
      deliveries: 1,
      step: 1,
      purpose: "train",
    });
  }
  const { rows } = await database.pool.query("select seq, body from events where run_id = $1 order by seq", [
    run.runId,
  ]);
  expect(rows.map((row) => row.seq)).toEqual(Array.from({ length: 20 }, (_, place) => place + 1));
  for (const row of rows)
    expect(EventBody.parse(row.body)).toMatchObject({ type: "rollout-status", state: "active", claim: 2 });
  await other.end();
});

test("a live lease is not taken; a past one is, and the old holder writes and renews nothing more (fault 41)", async () => {
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts as [SeededRollout];
  const writer = new BatchWriter(database.pool);
  await writer.write(turnEntry(rollout, 0));
  expect(await claimStage(database.pool, request(rollout, "w2"))).toBeNull();
  await expire(rollout);
  expect(await claimStage(database.pool, { ...request(rollout, "w2"), attempt: 2 })).toBeNull();
  expect(await claimStage(database.pool, { ...request(rollout, "w2"), stage: "init" })).toBeNull();
  const taken = await claimStage(database.pool, request(rollout, "w2"));
  expect(taken).toMatchObject({ claim: 2, turns: 1 });
  await expect(writer.write(turnEntry(rollout, 1))).rejects.toBeInstanceOf(FencedError);
  expect(await renewLeases(database.pool, "w1", [rollout])).toEqual([rollout]);
  expect(await renewLeases(database.pool, "w2", [{ ...rollout, claim: 2 }])).toEqual([]);
  const trajectory = await readTrajectory(database.pool, rollout.rolloutId, 1);
  expect(trajectory.turns).toHaveLength(1);
  expect(trajectory.turns[0]).toMatchObject({
    turn: 0,
    results: [null],
    calls: [{ name: "get", arguments: { key: "a" } }],
  });
  await writer.write(turnEntry({ ...rollout, claim: 2 }, 1));
  await writer.close();
});

test("a trajectory is read back as it was written", async () => {
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts as [SeededRollout];
  const writer = new BatchWriter(database.pool);
  const entry = turnEntry(rollout, 0);
  await writer.write(entry);
  const result = {
    index: 0,
    output: "b",
    error: { code: "gone", message: "no key" },
    durationMs: 2.5,
    finalAnswer: "7",
  };
  const observation = {
    index: 2,
    origin: "observation",
    tokens: [1, 2, 3],
    logprobs: null,
    policyVersion: null,
  } as const;
  await writer.write({
    kind: "tools",
    ...rollout,
    turn: 0,
    results: [result],
    segments: [observation],
    durationMs: 3,
    nextRanges: null,
  });
  const read = await readTrajectory(database.pool, rollout.rolloutId, 1);
  expect(read.turns).toEqual([{ ...entry.turn, results: [result] }]);
  const logprobs = entry.segments[1]?.logprobs?.map(Math.fround);
  expect(read.segments).toEqual([entry.segments[0], { ...entry.segments[1], logprobs }, observation]);
  await writer.close();
});
