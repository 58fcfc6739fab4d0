import type { NewLease } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { expect, test } from "vitest";
import { act, admitAll, plainTasks, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase } from "../../testing/postgres.ts";
import { BatchWriter } from "../hot/batch-writer.ts";
import { claimStage } from "../hot/claim-stage.ts";
import { poolLedger, readDemands, readGrants, readPools, setPoolSizes, writeGrants } from "./pools.ts";
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

test("demands and grants: what is granted bounds the run, and a risen grant wakes it", async () => {
  const own = await createTestDatabase();
  const { runId } = await startPlannedRun(own.pool);
  const find = async () => (await readDemands(own.pool)).find(({ pool }) => pool.resource === "initSlot");
  expect((await find())?.demands).toMatchObject([{ runId, held: 0, wanted: 8 }]);
  expect(
    (await readDemands(own.pool, () => false)).find(({ pool }) => pool.resource === "sandbox")?.demands[0]?.wanted,
  ).toBe(0);
  expect((await readGrants(own.pool, runId)).initSlot).toBe(512);
  await writeGrants(own.pool, [{ resource: "initSlot", granted: new Map([[runId, 3]]) }]);
  expect((await readGrants(own.pool, runId)).initSlot).toBe(3);
  const wake = async () => (await readSnapshot(own.pool, runId, plainTasks))?.wake;
  const before = await wake();
  await writeGrants(own.pool, [{ resource: "initSlot", granted: new Map([[runId, 2]]) }]);
  expect(await wake()).toBe(before);
  await writeGrants(own.pool, [{ resource: "initSlot", granted: new Map([[runId, 4]]) }]);
  expect(await wake()).toBe((before ?? 0) + 1);
  await own.drop();
});
