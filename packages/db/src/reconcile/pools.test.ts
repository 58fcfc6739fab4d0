import type { NewLease, Resource } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { act, admitAll, plainTasks, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { BatchWriter } from "../hot/batch-writer.ts";
import { claimStage } from "../hot/claim-stage.ts";
import { poolLedger, readDemands, readGrants, readPools, setPoolSizes, writeGrants } from "./pools.ts";
import { readQuotas, setPool, setQuota } from "./quotas.ts";
import { readSnapshot } from "./read-snapshot.ts";

const runLease: NewLease[] = [
  { resource: "initSlot", until: "init" },
  { resource: "sandbox", until: "run" },
];

test("a pool never passes its size, whatever is admitted and ended at once", async () => {
  const own = await createTestDatabase({ max: 20 });
  await setPoolSizes(own.pool, { sandbox: 5, initSlot: 9 });
  const runs = await Promise.all([1, 2, 3].map(() => startPlannedRun(own.pool, { groups: 3, groupSize: 4 })));
  const writer = new BatchWriter(own.pool);
  let most = 0;
  const step = fc.record({ run: fc.nat(2), count: fc.integer({ min: 1, max: 12 }), end: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 6 }), async (steps) => {
      await Promise.all(
        steps.map(async ({ run, count, end }) => {
          const runId = runs[run]?.runId ?? "";
          const snapshot = await snapshotOf(own.pool, runId);
          if (!end) {
            await act(own.pool, runId, admitAll(snapshot, runLease).slice(0, count), snapshot);
            return;
          }
          const inFlight = snapshot.rollouts.filter(({ state }) => state === "queued").slice(0, count);
          await Promise.all(
            inFlight.map(async (row) => {
              const claimed = await claimStage(own.pool, { ...row, workerId: "w" });
              const entry = { kind: "edge" as const, runId, ...row, claim: claimed?.claim ?? -1 };
              const to = { move: "release", failure: "infrastructure", reason: "x", ending: "sandbox_lost" } as const;
              await writer.write({ ...entry, to }).catch(() => undefined);
            }),
          );
          const failed = (await snapshotOf(own.pool, runId)).rollouts.filter(
            ({ state, ending }) => state === "waiting" && ending,
          );
          await act(
            own.pool,
            runId,
            failed.map(({ rolloutId, attempt }) => ({ do: "retry", rolloutId, attempt, notBefore: 0, reason: "x" })),
          );
        }),
      );
      const pools = await readPools(own.pool);
      for (const pool of pools) expect(pool.used).toBeLessThanOrEqual(pool.size);
      most = Math.max(most, pools.find(({ resource }) => resource === "sandbox")?.used ?? 0);
      expect(await poolLedger(own.pool)).toEqual([]);
    }),
    { numRuns: 25 },
  );
  expect(most).toBe(5);
  await writer.close();
  await own.drop();
});

test("demands and grants: what others were granted bounds the run, and a risen grant wakes it", async () => {
  const own = await createTestDatabase();
  const { runId } = await startPlannedRun(own.pool);
  const find = async () => (await readDemands(own.pool)).find(({ pool }) => pool.resource === "initSlot");
  expect((await find())?.demands).toMatchObject([{ runId, held: 0, wanted: 8 }]);
  expect(
    (await readDemands(own.pool, { needsSandbox: () => false, holdsRunSlotFromInit: () => true })).find(
      ({ pool }) => pool.resource === "sandbox",
    )?.demands[0]?.wanted,
  ).toBe(0);
  expect((await readGrants(own.pool, runId)).initSlot).toBe(512);
  const { runId: other } = await startPlannedRun(own.pool);
  await setPoolSizes(own.pool, { initSlot: 9 });
  const granted = (mine: number, others: number) =>
    writeGrants(own.pool, [
      {
        resource: "initSlot",
        granted: new Map([
          [runId, mine],
          [other, others],
        ]),
      },
    ]);
  await granted(3, 6);
  expect((await readGrants(own.pool, runId)).initSlot).toBe(3);
  // What no run was granted may be taken by any: who came to wait since the sharing need not wait for the next one.
  await granted(3, 4);
  expect((await readGrants(own.pool, runId)).initSlot).toBe(5);
  expect((await readGrants(own.pool, other)).initSlot).toBe(6);
  // Not past a project's quota, and not what is kept for evaluations.
  await own.pool.query("update pools set evaluation_reserve = 1 where resource = 'initSlot'");
  expect((await readGrants(own.pool, runId)).initSlot).toBe(4);
  await own.pool.query("insert into project_quotas select project, 'initSlot', 3 from runs where id = $1", [runId]);
  expect((await readGrants(own.pool, runId)).initSlot).toBe(3);
  const wake = async () => (await readSnapshot(own.pool, runId, plainTasks))?.wake;
  const before = await wake();
  await writeGrants(own.pool, [{ resource: "initSlot", granted: new Map([[runId, 2]]) }]);
  expect(await wake()).toBe(before);
  await writeGrants(own.pool, [{ resource: "initSlot", granted: new Map([[runId, 4]]) }]);
  expect(await wake()).toBe((before ?? 0) + 1);
  await own.drop();
});

describe("what a run asks for", () => {
  const facts = { needsSandbox: () => true, holdsRunSlotFromInit: (name: string) => name === "bounded" };
  const demandOf = async (database: TestDatabase, runId: string, resource: Resource) =>
    (await readDemands(database.pool, facts))
      .find(({ pool }) => pool.resource === resource)
      ?.demands.find((demand) => demand.runId === runId);

  test("has its weight, priority and project, as they were changed since", async () => {
    const own = await createTestDatabase();
    const config = { project: "alpha", dispatcher: { weight: 3, priority: 2 } };
    const { runId } = await startPlannedRun(own.pool, { config });
    expect(await demandOf(own, runId, "initSlot")).toMatchObject({ weight: 3, priority: 2, project: "alpha" });
    const change = { weight: 0.5, bounds: { init: 2, run: 2, evaluate: 1 } };
    await own.pool.query("update runs set dispatch = $2 where id = $1", [runId, change]);
    expect(await demandOf(own, runId, "initSlot")).toMatchObject({ weight: 0.5, priority: 2, wanted: 2 });
    expect((await snapshotOf(own.pool, runId)).config.dispatcher).toMatchObject({ ...change, priority: 2 });
    await own.drop();
  });

  test("takes run slots for init only where its policy holds them from there", async () => {
    const own = await createTestDatabase();
    for (const [name, wanted] of [
      ["pipeline", 0],
      ["bounded", 8],
    ] as const) {
      const { runId } = await startPlannedRun(own.pool, { config: { dispatcher: { name } } });
      expect((await demandOf(own, runId, "runSlot"))?.wanted).toBe(wanted);
    }
    await own.drop();
  });

  test("leaves out what is held back and, draining, what was never begun", async () => {
    const own = await createTestDatabase();
    const { runId } = await startPlannedRun(own.pool, { groups: 2, groupSize: 4 });
    const wanted = async () => (await demandOf(own, runId, "initSlot"))?.wanted;
    expect(await wanted()).toBe(8);
    const { rollouts } = await snapshotOf(own.pool, runId);
    await own.pool.query("update rollouts set held = true where id = $1", [rollouts[0]?.rolloutId]);
    expect(await wanted()).toBe(7);
    await own.pool.query("update groups set held = true where id = $1", [rollouts[7]?.groupId]);
    expect(await wanted()).toBe(3);
    await act(own.pool, runId, admitAll(await snapshotOf(own.pool, runId), runLease).slice(1, 3));
    await own.pool.query("update runs set draining = true where id = $1", [runId]);
    expect(await wanted()).toBe(2);
    await own.drop();
  });

  test("says how much of it is for evaluation", async () => {
    const own = await createTestDatabase();
    const { runId } = await startPlannedRun(own.pool, { groups: 1, groupSize: 2 });
    const evaluate = { do: "create-step", purpose: "evaluate", step: 0, source: "planned", batchId: null } as const;
    const groups = [{ taskSet: 0, split: "evaluate" as const, instanceIndex: 0 }];
    await act(own.pool, runId, [{ ...evaluate, groups, groupSize: 3 }]);
    expect(await demandOf(own, runId, "initSlot")).toMatchObject({ held: 0, wanted: 5, evaluating: 3 });
    await act(own.pool, runId, admitAll(await snapshotOf(own.pool, runId), runLease));
    expect(await demandOf(own, runId, "initSlot")).toMatchObject({ held: 5, wanted: 5, evaluating: 3 });
    expect((await snapshotOf(own.pool, runId)).groupsDrawn).toBe(1);
    await own.drop();
  });
});

test("quotas and pools are set once for all that ask alike, and wake who may get more", async () => {
  const own = await createTestDatabase();
  const { runId } = await startPlannedRun(own.pool);
  const quota = { project: "alpha", resource: "sandbox", quota: 4 } as const;
  expect(await setQuota(own.pool, quota)).toEqual([runId]);
  expect(await setQuota(own.pool, quota)).toEqual([]);
  expect(await readQuotas(own.pool)).toEqual([quota]);
  const sandboxes = async () => (await readDemands(own.pool)).find(({ pool }) => pool.resource === "sandbox");
  expect((await sandboxes())?.quotas).toEqual(new Map([["alpha", 4]]));
  expect(await setQuota(own.pool, { ...quota, quota: null })).toEqual([runId]);
  expect(await readQuotas(own.pool)).toEqual([]);
  await act(own.pool, runId, admitAll(await snapshotOf(own.pool, runId), runLease));
  expect(await setPool(own.pool, "sandbox", { size: 3, evaluationReserve: 2 })).toEqual([runId]);
  // Eight are held: no pool is smaller than that.
  expect((await sandboxes())?.pool).toEqual({ resource: "sandbox", size: 8, used: 8, evaluationReserve: 2 });
  expect(await setPool(own.pool, "sandbox", { size: 3 })).toEqual([]);
  await expect(setPool(own.pool, "sandbox", { evaluationReserve: 9 })).rejects.toThrow(/at most 8/);
  expect((await sandboxes())?.pool.evaluationReserve).toBe(2);
  await own.drop();
});
