/** Admissions that meet what others write at the same moment: who came first is decided by a lock that the test holds. */
import type { NewLease } from "@rolldeck/contracts/plan";
import { afterEach, beforeEach, expect, test } from "vitest";
import { act, admitAll, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { poolLedger, readPools, setPoolSizes } from "../reconcile/pools.ts";
import { cancelStep } from "./cancel-step.ts";

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase({ max: 10 });
});
afterEach(async () => {
  await database.drop();
});

const leases: NewLease[] = [{ resource: "sandbox", until: "run" }];
const look = (runId: string) => snapshotOf(database.pool, runId);
const leasesOf = async (runId: string): Promise<number> => {
  const { rows } = await database.pool.query("select count(*)::int as n from pool_leases where run_id = $1", [runId]);
  return rows[0].n;
};

/** Statements of this database that wait for a lock. */
async function untilWaiting(count: number): Promise<void> {
  const sql = `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  for (let looks = 0; looks < 2_000; looks++) {
    const { rows } = await database.pool.query(sql);
    if (rows[0].n >= count) return;
  }
  throw new Error(`${count} statements never waited`);
}

/** Begins `statements` one after the other while `before` is done and not committed; they go on in that order. */
async function behind<T>(before: string, values: unknown[], ...statements: (() => Promise<T>)[]): Promise<T[]> {
  const client = await database.pool.connect();
  try {
    await client.query("begin");
    for (const part of before.split(";")) await client.query(part, part.includes("$1") ? values : []);
    const begun: Promise<T>[] = [];
    for (const statement of statements) {
      begun.push(statement());
      await untilWaiting(begun.length);
    }
    await client.query("commit");
    return await Promise.all(begun);
  } finally {
    client.release();
  }
}

test("room that came free after an admission's statement began is taken, and no check refuses it", async () => {
  await setPoolSizes(database.pool, { sandbox: 4 });
  const { runId: old } = await startPlannedRun(database.pool, { groups: 1, groupSize: 4 });
  await act(database.pool, old, admitAll(await look(old), leases));
  const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 8 });
  const snapshot = await look(runId);
  const freed = `delete from pool_leases where run_id = $1; update pools set used = 0, size = 6 where resource = 'sandbox'`;
  const [applied] = await behind(freed, [old], () =>
    act(database.pool, runId, admitAll(snapshot, leases).slice(0, 6), snapshot),
  );
  expect(applied).toMatchObject({ applied: 6, refused: 0 });
  expect((await readPools(database.pool)).find(({ resource }) => resource === "sandbox")).toMatchObject({
    used: 6,
    size: 6,
  });
  expect(await poolLedger(database.pool)).toEqual([]);
});

const locked = "select id from rollouts where run_id = $1 order by id for no key update";

test("a group that is set aside right behind an admission gives back what that admission took", async () => {
  const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 4 });
  const snapshot = await look(runId);
  const [group] = snapshot.groups ?? [];
  const aside = {
    groupId: group?.groupId ?? "",
    stepId: group?.stepId ?? "",
    as: "not-needed",
    reason: "tests",
  } as const;
  const [admitted] = await behind(
    locked,
    [runId],
    () => act(database.pool, runId, admitAll(snapshot, leases), snapshot),
    () => act(database.pool, runId, [{ do: "set-aside", ...aside }], snapshot),
  );
  expect(admitted).toMatchObject({ applied: 4 });
  expect((await look(runId)).rollouts.filter(({ state }) => state !== "settled")).toEqual([]);
  expect(await leasesOf(runId)).toBe(0);
  expect(await poolLedger(database.pool)).toEqual([]);
});

test("a step that is cancelled right behind an admission gives back what that admission took", async () => {
  const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 4 });
  const snapshot = await look(runId);
  const step = snapshot.steps.find(({ purpose }) => purpose === "train");
  await behind<unknown>(
    locked,
    [runId],
    () => act(database.pool, runId, admitAll(snapshot, leases), snapshot),
    () => cancelStep(database.pool, step?.stepId ?? "", "tests"),
  );
  expect(await leasesOf(runId)).toBe(0);
  expect(await poolLedger(database.pool)).toEqual([]);
});
