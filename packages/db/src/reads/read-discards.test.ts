import { NotFoundError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedGroup, seedRun, seedStep } from "../../testing/seed-run.ts";
import { readDiscards } from "./read-discards.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const set = (sql: string, ...values: unknown[]) => database.pool.query(sql, values);

test("rollouts that were left out are counted by task and length, so that starved ones show (fault 47)", async () => {
  const runId = await seedRun(database.pool);
  const scored = { reward: 1, ending: "answer" } as const;
  const { stepId, rolloutIds } = await seedStep(database.pool, runId, {
    step: 1,
    rollouts: [scored, scored, { reward: null, ending: "sandbox_lost" }, { reward: null, ending: null }],
  });
  const stale = await seedGroup(database.pool, { runId, stepId, instanceIndex: 7, rollouts: [scored, scored] });
  const long = await seedGroup(database.pool, { runId, stepId, instanceIndex: 8, rollouts: [scored, scored] });
  await set("update rollouts set turns = 3 where id = any($1)", rolloutIds);
  await set("update rollouts set turns = 9 where group_id = any($1)", [stale.groupId, long.groupId]);
  await set("update groups set set_aside = 'stale' where id = $1", stale.groupId);
  await set("update groups set task = 'other', set_aside = 'not-needed' where id = $1", long.groupId);
  await set("update rollouts set turns = 0, outcome = 'cancelled', ending = 'not_needed' where id = $1", rolloutIds[1]);
  const none = { stale: 0, "zero-variance": 0, "not-needed": 0, cancelled: 0, failed: 0 };
  expect(await readDiscards(database.pool, runId)).toEqual({
    runId,
    rows: [
      { task: "key-chain", fromTurns: 0, rollouts: 1, discarded: { ...none, "not-needed": 1 } },
      { task: "key-chain", fromTurns: 2, rollouts: 2, discarded: { ...none, failed: 1 } },
      { task: "key-chain", fromTurns: 8, rollouts: 2, discarded: { ...none, stale: 2 } },
      { task: "other", fromTurns: 8, rollouts: 2, discarded: { ...none, "not-needed": 2 } },
    ],
  });
  // A step that is given up trains none of what was scored.
  await set("update steps set state = 'cancelled' where id = $1", stepId);
  const { rows } = await readDiscards(database.pool, runId);
  expect(rows[1]).toEqual({
    task: "key-chain",
    fromTurns: 2,
    rollouts: 2,
    discarded: { ...none, failed: 1, cancelled: 1 },
  });
  await expect(readDiscards(database.pool, "nothere0")).rejects.toBeInstanceOf(NotFoundError);
});
