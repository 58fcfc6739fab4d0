/** Stop stops (fault 45): whatever the run waits for, it is over, its requests are closed and its partial data are kept. */
import { moveRun } from "@rolldeck/db/runs/move-run";
import { tasks } from "@rolldeck/tasks/registry";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

/** What the product promises for a stop, milliseconds. */
const stopLimitMs = 5_000;
const never = () => new Promise<never>(() => undefined);
const keyChain = tasks["key-chain"];

async function stopAndCheck(made: Rig, runId: string): Promise<void> {
  await moveRun(made.database.pool, runId, "stopping", "by hand");
  await made.until("stopped", async () => (await made.status(runId)).status === "stopped", stopLimitMs);
  const left = "select count(*)::int from rollouts where run_id = $1 and (state <> 'settled' or outcome is null)";
  expect(await made.value(left, [runId])).toBe(0);
  expect(await made.value("select count(*)::int from pool_leases where run_id = $1", [runId])).toBe(0);
  await made.until(
    "nothing is held",
    async () => made.workers.every(({ context }) => context.leases.size === 0),
    stopLimitMs,
  );
}

describe("stop while", () => {
  test("a model call hangs: the request is closed", async () => {
    rig = await startRig({ delayMs: 600_000 });
    const made = rig;
    const runId = await made.launch(smokeConfig());
    await made.until("calls hang", async () => made.gpu.stats.waiting === 16);
    await stopAndCheck(made, runId);
    await made.until("requests closed", async () => made.gpu.stats.cancelled === 16, stopLimitMs);
    // Twice is harmless, and nothing flips it back.
    await expect(moveRun(made.database.pool, runId, "stopping", null)).rejects.toMatchObject({ name: "ConflictError" });
    expect((await made.status(runId)).status).toBe("stopped");
  });

  test("jobs wait for a slot", async () => {
    rig = await startRig({ delayMs: 600_000 });
    const made = rig;
    const config = smokeConfig({
      dispatcher: { name: "bounded", bounds: { init: 2, run: 2, evaluate: 2 } },
      algorithm: { groupsPerStep: 8, groupSize: 8 },
    });
    const runId = await made.launch(config);
    await made.until("two calls hang", async () => made.gpu.stats.waiting === 2);
    await stopAndCheck(made, runId);
    expect(
      await made.value("select count(*)::int from rollouts where run_id = $1 and outcome = 'cancelled'", [runId]),
    ).toBe(64);
  });

  test("grading runs", async () => {
    let grading = 0;
    const slow = {
      ...keyChain,
      verify: () => {
        grading++;
        return never();
      },
    };
    rig = await startRig({ parts: { tasks: { "key-chain": slow } } });
    const made = rig;
    const runId = await made.launch(smokeConfig());
    await made.until("grading", async () => grading === 16);
    await stopAndCheck(made, runId);
    // What was sampled stays readable.
    expect(Number(await made.value("select count(*)::int from transitions"))).toBeGreaterThan(16);
  });

  test("a retry waits for its back-off", async () => {
    const broken = { ...keyChain, verify: () => Promise.reject(new Error("crashed")) };
    rig = await startRig({ parts: { tasks: { "key-chain": broken } } });
    const made = rig;
    const runId = await made.launch(smokeConfig());
    await made.until("back-off", async () => made.value("select 1 from rollouts where not_before > now()"));
    await stopAndCheck(made, runId);
  });

  test("the model server is not there yet", async () => {
    rig = await startRig();
    const made = rig;
    await made.gpu.pause();
    const runId = await made.launch(smokeConfig());
    await made.until("preparing", async () => (await made.status(runId)).status === "preparing");
    await stopAndCheck(made, runId);
  });

  test("an update hangs", async () => {
    rig = await startRig();
    const made = rig;
    made.gpu.fail({ path: /optim_step/, kind: "hang", times: 100 });
    const runId = await made.launch(smokeConfig());
    await made.until("updating", async () => made.gpu.stats.requests.get("/api/v1/optim_step"));
    await stopAndCheck(made, runId);
    expect(await made.value("select step from runs where id = $1", [runId])).toBe(0);
  });
});

test("pause hands rollouts back at a turn boundary; resume goes on where they were", async () => {
  rig = await startRig({ delayMs: 150 });
  const made = rig;
  const runId = await made.launch(smokeConfig({ budget: { steps: 1 } }));
  await made.until("turns", async () => Number(await made.value("select count(*)::int from transitions")) >= 16);
  await moveRun(made.database.pool, runId, "pausing", null);
  await made.untilStatus(runId, "paused");
  const turns = await made.value("select count(*)::int from transitions");
  const samples = made.gpu.stats.samples;
  expect(await made.value("select count(*)::int from rollouts where state = 'active'")).toBe(0);
  await moveRun(made.database.pool, runId, "running", null);
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(await made.value("select max(attempt) from rollouts where run_id = $1", [runId])).toBe(1);
  // Nothing that was committed was sampled again.
  const all = Number(await made.value("select count(*)::int from transitions"));
  expect(made.gpu.stats.samples - samples).toBe(all - Number(turns));
});
