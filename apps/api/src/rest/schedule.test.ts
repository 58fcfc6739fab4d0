/** Schedules and pools over REST and the SDK: what is told, who may change it, and what a change does to rows and runs. */

import { Rolldeck } from "@rolldeck/client/rolldeck";
import { Schedule } from "@rolldeck/contracts/api/schedule";
import { reportEngineLoad, supervisedGpuWorker } from "@rolldeck/db/gpu-workers";
import { setRunLimit } from "@rolldeck/db/runs/set-run-limit";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { seedSchedule } from "@rolldeck/db/testing/seed-schedule";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../testing/start-api.ts";

let api: TestApi;
let sdk: Rolldeck;
let runId: string;
let rolloutIds: readonly string[];
const bounds = { init: 6, run: 12, evaluate: 4 };
beforeAll(async () => {
  api = await startTestApi();
  sdk = new Rolldeck({ url: api.url, token: api.ownerToken });
  const { pool } = api.database;
  runId = await seedRun(pool, { config: { name: "scheduled", project: "north", dispatcher: { bounds, weight: 2 } } });
  const shape = { groups: 8, groupSize: 6, bounds, sandboxes: true };
  await seedSchedule(pool, runId, { ...shape, step: 1 });
  ({ rolloutIds } = await seedSchedule(pool, runId, { ...shape, step: 2, elapsedS: 60 }));
});
afterAll(() => api.close());

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);

it("what was left out of training is counted by task and length (fault 47)", async () => {
  const { rows } = await sdk.readDiscards(runId);
  expect(sum(rows.map(({ rollouts }) => rollouts))).toBeGreaterThan(48);
  expect(rows.every(({ task, discarded }) => task === "key-chain" && discarded.stale === 0)).toBe(true);
  await expect(sdk.readDiscards("0".repeat(26))).rejects.toMatchObject({ status: 404 });
});

describe("the schedule of a step", () => {
  it("has every stage of every attempt, in columns of one length", async () => {
    const schedule = await sdk.readSchedule({ runId, step: 1 });
    expect(schedule).toMatchObject({ step: 1, state: "done", over: true, steps: [2, 1] });
    expect(schedule.groups).toHaveLength(8);
    expect(schedule.rollouts.rolloutId).toHaveLength(48);
    const { spans } = schedule;
    expect(new Set(Object.values(spans).map((column) => column.length)).size).toBe(1);
    // Two rollouts (the 23rd and the 46th) lose an attempt in its run stage.
    expect(spans.rollout).toHaveLength(48 * 3 + 2 * 2);
    expect(schedule.rollouts.attempt.filter((attempt) => attempt === 2)).toHaveLength(2);
    expect(Math.min(...spans.readyMs)).toBe(0);
    expect(schedule.toMs).toBeCloseTo((schedule.gatheredMs ?? 0) + 20_000, -1);
  });

  it("has every millisecond in one part, and the replaced attempts' work as lost", async () => {
    const { time, spans, rollouts, toMs } = await sdk.readSchedule({ runId, step: 1 });
    const whole = rollouts.rolloutId.length * toMs;
    expect(sum(Object.values(time)) / whole).toBeCloseTo(1, 3);
    const lost = spans.rollout.map((rollout, at) =>
      spans.attempt[at] === rollouts.attempt[rollout] ? 0 : (spans.endedMs[at] ?? 0) - (spans.startedMs[at] ?? 0),
    );
    expect(time.lost).toBeCloseTo(sum(lost), 0);
    expect(time.trainer).toBeCloseTo(48 * 20_000, -2);
    expect(time.gradeSlot).toBeGreaterThan(0);
    expect(time.initSlot).toBeGreaterThan(0);
  });

  it("tells use of size by lane; what is counted of spans is what the lanes say", async () => {
    const { use, spans, toMs } = await sdk.readSchedule({ runId, step: 2 });
    expect(use.lanes.map(({ lane, size, bound }) => [lane, size, bound])).toEqual([
      ["init", 6, "bounds.init"],
      ["run", 12, "bounds.run"],
      ["evaluate", 4, "bounds.evaluate"],
      ["sandbox", 256, "the pool of sandboxes"],
      ["model", null, null],
    ]);
    const run = use.lanes.find(({ lane }) => lane === "run");
    const worked = spans.stage.map((stage, at) =>
      stage === 1 && spans.startedMs[at] != null ? (spans.endedMs[at] ?? toMs) - (spans.startedMs[at] ?? 0) : 0,
    );
    // Step 1 ended as step 2 began to be read: none of its run stages lies in the shown span's last part.
    expect(sum(run?.mean.slice(-40) ?? []) / 40).toBeLessThanOrEqual(24.01);
    expect(sum(run?.mean ?? []) * use.sliceMs).toBeGreaterThanOrEqual(sum(worked) * 0.99);
  });

  it("is of the newest step where none is named; what is under way has no end", async () => {
    const schedule = await sdk.readSchedule({ runId });
    expect(schedule).toMatchObject({ step: 2, state: "gathering", over: false, gatheredMs: null });
    expect(schedule.spans.endedMs).toContain(null);
    expect(schedule.rollouts.state).toContain("waiting");
    expect(schedule.rollouts.rolloutId).toEqual(rolloutIds);
  });

  it("is empty where there is no such step, and not found where there is no run", async () => {
    expect(await sdk.readSchedule({ runId, step: 99 })).toMatchObject({ step: 99, state: null, fromAt: null });
    expect(await sdk.readSchedule({ runId, purpose: "evaluate" })).toMatchObject({ step: null, groups: [] });
    expect((await api.fetch("/api/v1/runs/0123456789abcdef/schedule")).status).toBe(404);
  });

  it("of 4,096 rollouts stays below a megabyte", async () => {
    const { pool } = api.database;
    const large = await seedRun(pool, { config: { name: "large" } });
    const wide = { init: 512, run: 1024, evaluate: 256 };
    await seedSchedule(pool, large, { step: 1, groups: 512, groupSize: 8, bounds: wide });
    const text = await (await api.fetch(`/api/v1/runs/${large}/schedule`)).text();
    expect(Schedule.parse(JSON.parse(text)).rollouts.rolloutId).toHaveLength(4096);
    expect(text.length).toBeLessThan(1_000_000);
    await pool.query("delete from runs where id = $1", [large]);
  });
});

describe("waiting now", () => {
  it("says what the engine bears and how many may run, with the reason", async () => {
    const { pool } = api.database;
    expect((await sdk.readWaiting(runId)).engine).toMatchObject({ tells: true, load: null, limit: 12, bound: 12 });
    await pool.query("insert into gpu_workers (name, state, boot_id) values ($1, 'ready', 'b')", [supervisedGpuWorker]);
    const load = { running: 9, waiting: 2, cacheUse: 0.5 };
    await reportEngineLoad(pool, supervisedGpuWorker, { ...load, at: Date.now() - 600_000 });
    await pool.query(`update runs set dispatch = '{"adaptive": true}' where id = $1`, [runId]);
    await setRunLimit(pool, runId, { from: null, to: 7, reason: "fewer at once" });
    expect((await sdk.readWaiting(runId)).engine).toMatchObject({
      load: { ...load, fresh: false },
      ...{ adaptive: true, limit: 7, bound: 12, limitSince: expect.any(String), limitReason: "fewer at once" },
    });
  });
  it("counts who waits by stage, as many as the rows say, with a reason", async () => {
    const { waits } = await sdk.readWaiting(runId);
    const { rows } = await api.database.pool.query(
      "select stage, count(*)::int as count from rollouts where run_id = $1 and state = 'waiting' group by 1 order by 2 desc",
      [runId],
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(waits.map(({ stage, count }) => ({ stage, count }))).toEqual(rows);
    expect((await api.fetch("/api/v1/runs/0123456789abcdef/waiting")).status).toBe(404);
  });
});

describe("pools", () => {
  const find = async (resource: string) => (await sdk.listPools()).pools.find((pool) => pool.resource === resource);

  it("tell each run's share, weight, priority and who waits", async () => {
    const { pool } = api.database;
    await pool.query(
      `insert into pool_leases (resource, rollout_id, run_id, attempt, until)
       select 'runSlot', id, run_id, attempt, 'run' from rollouts where run_id = $1 and stage = 'run' and state = 'active'`,
      [runId],
    );
    await pool.query("update pools set used = (select count(*) from pool_leases) where resource = 'runSlot'");
    const active = (await pool.query("select count(*)::int as n from pool_leases")).rows[0].n;
    expect(await find("runSlot")).toMatchObject({
      size: 4096,
      used: active,
      runs: [{ runId, name: "scheduled", project: "north", weight: 2, priority: 0, held: active, granted: null }],
    });
    const waiting = await pool.query(
      "select count(*)::int as n from rollouts where run_id = $1 and stage = 'evaluate' and state = 'waiting'",
      [runId],
    );
    expect((await find("gradeSlot"))?.runs[0]?.waiting ?? 0).toBe(waiting.rows[0].n);
    // Its task needs no sandbox.
    expect((await find("sandbox"))?.runs).toEqual([]);
  });

  it("tell what was changed of a run since launch, quotas with what their projects hold, and the reserve", async () => {
    await sdk.changeDispatcher({ runId, priority: 3, weight: 0.5 });
    await sdk.setQuota({ project: "north", resource: "runSlot", quota: 40 });
    await sdk.setPool({ resource: "runSlot", evaluationReserve: 2 });
    const runSlot = await find("runSlot");
    expect(runSlot).toMatchObject({ evaluationReserve: 2, runs: [{ priority: 3, weight: 0.5 }] });
    expect(runSlot?.quotas).toEqual([{ project: "north", quota: 40, held: runSlot?.used }]);
  });
});

describe("simulations", () => {
  const over = async (simulationId: string) => {
    for (;;) {
      const info = await sdk.getSimulation(simulationId);
      if (info.state !== "running") return info;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };

  it("predict the run as it is dispatched now, and others beside it, in a thread of their own", async () => {
    await sdk.changeDispatcher({ runId, bounds: { evaluate: 3 } });
    const { simulationId } = await sdk.startSimulation({ runId, seeds: 1, dispatchers: ["bounded"] });
    const { state, reason, result, played } = await over(simulationId);
    expect([state, reason]).toEqual(["done", null]);
    expect(played).toBeGreaterThan(1);
    expect(result).toMatchObject({ basis: "recorded", seeds: 1, sandboxed: false, steps: 1 });
    // Those of the step that is under way, too.
    expect(result?.rollouts).toBeGreaterThan(46);
    expect(result?.actualStepMs).toBeGreaterThan(0);
    expect(result?.present).toMatchObject({ dispatcher: "pipeline", bounds: { ...bounds, evaluate: 3 }, change: null });
    expect(new Set(result?.others.map(({ dispatcher }) => dispatcher))).toEqual(new Set(["pipeline", "bounded"]));
  });

  it("are stopped midway, and stay so", async () => {
    const { simulationId } = await sdk.startSimulation({ runId, seeds: 16 });
    expect((await sdk.cancelSimulation(simulationId)).state).toBe("cancelled");
    expect((await sdk.getSimulation(simulationId)).state).toBe("cancelled");
  });

  it("name the policy that is not there, and are not found when nobody asked for them", async () => {
    await expect(sdk.startSimulation({ runId, dispatchers: ["pipelin"] })).rejects.toMatchObject({
      problem: { status: 400, errors: [{ path: "dispatchers[0]", fix: "pipeline" }] },
    });
    expect((await api.fetch("/api/v1/simulations/0123456789abcdef")).status).toBe(404);
  });
});
