/** The books of environments: who has one, who may, and what the pool counts. */
import type { NewLease } from "@rolldeck/contracts/plan";
import { afterEach, beforeEach, expect, test } from "vitest";
import { act, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { agentSandbox, liveSandboxes } from "../reads/live-sandboxes.ts";
import type { Applied } from "../reconcile/apply-actions.ts";
import { poolLedger, readDemands, readGrants, setPoolSizes } from "../reconcile/pools.ts";
import { type Admission, admitRollouts } from "./admit-rollouts.ts";
import { claimStage } from "./claim-stage.ts";
import { takeEnvironment } from "./environments.ts";
import { moveRollouts } from "./move-rollouts.ts";
import { planSandbox, sandboxEnded, sandboxOpened } from "./sandboxes.ts";

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase({ max: 20 });
  await setPoolSizes(database.pool, { sandbox: 2 });
});
afterEach(() => database.drop());

const leases: NewLease[] = [{ resource: "sandbox", until: "run" }];
const used = async () => (await database.pool.query("select used from pools where resource = 'sandbox'")).rows[0]?.used;
const waiting = async (runId: string) =>
  (await snapshotOf(database.pool, runId)).rollouts.filter(
    ({ state, stage }) => state === "waiting" && stage === "init",
  );

const admit = async (runId: string, count: number): Promise<readonly Admission[]> => {
  const asked = (await waiting(runId)).slice(0, count).map((seen) => ({ seen, stage: "init" as const, leases }));
  return (await admitRollouts(database.pool, { runId, status: "running" }, asked)).made;
};

let made = 0;
async function claimed(runId: string, { seen }: Admission) {
  const { rolloutId, attempt } = seen;
  const stage = await claimStage(database.pool, { rolloutId, attempt, stage: "init", workerId: "w" });
  return { runId, rolloutId, attempt, claim: stage?.claim ?? -1 };
}
async function opened(of: Awaited<ReturnType<typeof claimed>>, fingerprint: string): Promise<string> {
  const id = `sbx_${String(++made).padStart(20, "0")}`;
  const row = { ...of, id, purpose: "agent", runtime: "docker", image: null, network: "none", inPlace: false } as const;
  await planSandbox(database.pool, { ...row, fingerprint });
  await sandboxOpened(database.pool, of, { id, phases: {} });
  return id;
}
const settle = async (runId: string, rolloutId: string) => {
  const seen = (await snapshotOf(database.pool, runId)).rollouts.find((row) => row.rolloutId === rolloutId);
  if (seen === undefined) throw new Error("no such rollout");
  await moveRollouts(database.pool, runId, [{ move: "settle", seen, outcome: "failed", ending: "infrastructure" }]);
};
const run = () => startPlannedRun(database.pool, { groups: 2, groupSize: 4 });

/** Two rollouts had one each, and are over. */
async function twoIdle() {
  const { runId } = await run();
  const ids: string[] = [];
  for (const one of await admit(runId, 2)) {
    const of = await claimed(runId, one);
    ids.push(await opened(of, ids.length === 0 ? "a" : "b"));
    await settle(runId, of.rolloutId);
  }
  return { runId, ids };
}

test("idle ones keep their places; the run's next rollouts get them, others find the pool full", async () => {
  const { runId } = await twoIdle();
  expect(await used()).toBe(2);
  expect(await poolLedger(database.pool)).toEqual([]);
  const other = await run();
  expect(await admit(other.runId, 1)).toEqual([]);
  expect(await admit(runId, 3)).toHaveLength(2);
  expect(await used()).toBe(2);
  expect(await poolLedger(database.pool)).toEqual([]);
});

test("of what is at hand the fitting one is taken, and what was handed over is idle again", async () => {
  const { runId, ids } = await twoIdle();
  const [one] = await admit(runId, 1);
  if (one === undefined) throw new Error("not admitted");
  const of = await claimed(runId, one);
  const taken = await takeEnvironment(database.pool, of, { fingerprint: "a", inPlace: false });
  expect(taken).toEqual({ id: ids[0], runtime: "docker", fingerprint: "a" });
  expect(await poolLedger(database.pool)).toEqual([]);
  expect(await agentSandbox(database.pool, of.rolloutId, of.attempt)).toBeNull();
  await sandboxOpened(database.pool, of, { id: ids[0] ?? "", phases: {} });
  expect(await agentSandbox(database.pool, of.rolloutId, of.attempt)).toMatchObject({ id: ids[0] });
  // A claim that has passed takes nothing, and ends nothing that is another's by now.
  await expect(
    takeEnvironment(database.pool, { ...of, claim: of.claim - 1 }, { fingerprint: "b", inPlace: false }),
  ).rejects.toThrow();
  expect(await sandboxEnded(database.pool, ids[0] ?? "", { state: "closed", reason: null, claim: of.claim - 1 })).toBe(
    false,
  );
  await settle(runId, of.rolloutId);
  expect(await used()).toBe(2);
  expect(await poolLedger(database.pool)).toEqual([]);
});

test("closing an idle one gives its place back, once; one that was taken meanwhile stays", async () => {
  const { runId, ids } = await twoIdle();
  const close = (id: string) =>
    sandboxEnded(database.pool, id, { state: "closed", reason: "x", unlessKept: true, ifIdle: true });
  expect([await close(ids[0] ?? ""), await close(ids[0] ?? "")]).toEqual([true, false]);
  expect(await used()).toBe(1);
  await admit(runId, 1);
  expect(await close(ids[1] ?? "")).toBe(false);
  expect(await used()).toBe(1);
  expect(await poolLedger(database.pool)).toEqual([]);
});

test("a plan that meets nothing but a full pool waits for room: closing an idle one wakes its run", async () => {
  const { runId, ids } = await twoIdle();
  const other = await run();
  const wakeOf = async (id: string) =>
    (await database.pool.query("select wake from runs where id = $1", [id])).rows[0]?.wake;
  const plan = (count: number): Promise<Applied> =>
    waiting(other.runId).then((rows) =>
      act(
        database.pool,
        other.runId,
        rows
          .slice(0, count)
          .map(({ rolloutId, attempt }) => ({ do: "admit", rolloutId, attempt, stage: "init", leases })),
      ),
    );
  const before = await wakeOf(other.runId);
  expect(await plan(2)).toMatchObject({ applied: 0, refused: 2, waits: true });
  expect(await wakeOf(other.runId)).toBe(before);
  const own = await wakeOf(runId);
  await sandboxEnded(database.pool, ids[0] ?? "", { state: "closed", reason: "x", ifIdle: true });
  expect(await wakeOf(runId)).toBeGreaterThan(own);
  // What was done may have changed what is left to do.
  expect(await plan(2)).toMatchObject({ applied: 1, refused: 1, waits: false });
  expect(await wakeOf(other.runId)).toBeGreaterThan(before);
});

test("however many ask and close at once, the books are right and the pool is never above its size", async () => {
  const { runId, ids } = await twoIdle();
  const other = await run();
  await Promise.all([
    ...Array.from({ length: 4 }, () => admit(runId, 3)),
    ...Array.from({ length: 4 }, () => admit(other.runId, 3)),
    ...ids.map((id) => sandboxEnded(database.pool, id, { state: "closed", reason: "x", ifIdle: true })),
  ]);
  expect(await used()).toBeLessThanOrEqual(2);
  expect(await poolLedger(database.pool)).toEqual([]);
});

test("they are due when the run does not run, and when others were granted their places", async () => {
  const { runId, ids } = await twoIdle();
  const due = async () =>
    (await liveSandboxes(database.pool)).filter((row) => row.due !== null).map(({ id, due: why }) => [id, why]);
  expect(await due()).toEqual([]);
  expect((await readGrants(database.pool, runId)).sandbox).toBe(2);
  const demands = (await readDemands(database.pool)).find(({ pool }) => pool.resource === "sandbox")?.demands;
  expect(demands).toMatchObject([{ held: 0, wanted: 6 }]);
  await database.pool.query("insert into pool_grants (resource, run_id, granted) values ('sandbox', $1, 1)", [runId]);
  expect(await due()).toEqual([[ids[0], "other runs wait for its place"]]);
  // Where there is room, nobody waits for a place that the run has beyond its grant.
  await setPoolSizes(database.pool, { sandbox: 3 });
  expect(await due()).toEqual([]);
  await database.pool.query("update runs set status = 'paused' where id = $1", [runId]);
  expect(await due()).toEqual(ids.map((id) => [id, "its run is paused"]));
});
