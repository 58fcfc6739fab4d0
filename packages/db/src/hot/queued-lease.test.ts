import { leaseMs } from "@rolldeck/contracts/jobs";
import type { Action } from "@rolldeck/contracts/plan";
import { afterAll, beforeAll, expect, test } from "vitest";
import { act, admitAll, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** How much later each lease ends than the first, rounded to milliseconds, in the plan's order. */
async function laterThanFirst(runId: string): Promise<number[]> {
  const { rollouts } = await snapshotOf(database.pool, runId);
  const ends = rollouts.map(({ leaseUntil }) => leaseUntil ?? 0);
  return ends.map((end) => Math.round(end - (ends[0] ?? 0)));
}

test("of a burst, those far behind count as on their way for longer, admitted or delivered again", async () => {
  const { runId } = await startPlannedRun(database.pool, { groups: 40, groupSize: 8 });
  const expected = Array.from({ length: 320 }, (_, place) => Math.max(place - 256, 0) * 25);
  const before = await snapshotOf(database.pool, runId);
  await act(database.pool, runId, admitAll(before), before);
  expect(await laterThanFirst(runId)).toEqual(expected);
  const first = (await snapshotOf(database.pool, runId)).rollouts[0];
  expect(first?.leaseUntil).toBeGreaterThanOrEqual(before.now + leaseMs);

  await database.pool.query("update rollouts set lease_until = now() where run_id = $1", [runId]);
  const lost = await snapshotOf(database.pool, runId);
  const again = lost.rollouts.map(
    ({ rolloutId, attempt, stage }): Action => ({ do: "redeliver", rolloutId, attempt, stage }),
  );
  expect(await act(database.pool, runId, again, lost)).toMatchObject({ applied: 320 });
  expect(await laterThanFirst(runId)).toEqual(expected);
});
