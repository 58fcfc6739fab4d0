/** The model server comes and goes; the run's rows say what its model is, and the model is made that again. */

import { RunConfig } from "@rolldeck/contracts/run-config";
import { cancelStep } from "@rolldeck/db/hot/cancel-step";
import { readRun } from "@rolldeck/db/reads/read-run";
import { createRun } from "@rolldeck/db/runs/create-run";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const trainer = (every: number, steps: number) =>
  smokeConfig({
    algorithm: { groupsPerStep: 2, groupSize: 4, filterZeroVariance: false },
    checkpoints: { every, keep: 2 },
    budget: { steps },
  });

async function untilStep(made: Rig, runId: string, step: number): Promise<void> {
  await made.until(
    `step ${step}`,
    async () => Number(await made.value("select step from runs where id = $1", [runId])) >= step,
  );
}
const boots = async (made: Rig, runId: string) =>
  (await made.events(runId)).filter((body) => body.type === "model-adopted");

/** Digest of the model after the run's last step: equal digests were trained on the same rows in the same order. */
async function lastDigest(every: number, disturb: (made: Rig, runId: string) => Promise<void>): Promise<string> {
  const made = await startRig({ delayMs: 20 });
  try {
    const runId = await made.launch(trainer(every, 4));
    await disturb(made, runId);
    // The model is freed when the run is over: it is looked at as long as it is there.
    const digest = await made.until(
      "the last step",
      async () => made.gpu.models().find(({ step }) => step === 4)?.digest,
    );
    expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
    const count = (sql: string) => made.value(sql, [runId]);
    expect(await count("select count(*)::int from training_rows where run_id = $1")).toBe(32);
    expect(await count("select sum(update_failures)::int from steps where run_id = $1")).toBe(0);
    expect(await count("select max(attempt) from rollouts where run_id = $1")).toBe(1);
    return digest;
  } finally {
    await made.close();
  }
}
let undisturbed: Promise<string> | null = null;
const reference = () => {
  undisturbed ??= lastDigest(100, async () => undefined);
  return undisturbed;
};

describe("a model server that loses the model", () => {
  test("before any checkpoint: made again from the seed and every stored step, to the same weights", async () => {
    const digest = await lastDigest(100, async (made, runId) => {
      await untilStep(made, runId, 2);
      await made.gpu.restart({ downMs: 300 });
      await made.until("adopted", async () => (await boots(made, runId)).length > 1);
      expect((await boots(made, runId)).at(-1)).toMatchObject({ checkpoint: null });
    });
    expect(digest).toBe(await reference());
  });

  test("after a checkpoint: made again from it and the later steps, to the same weights", async () => {
    const digest = await lastDigest(2, async (made, runId) => {
      await untilStep(made, runId, 3);
      await made.gpu.restart({ downMs: 300 });
      await made.until("adopted", async () => (await boots(made, runId)).length > 1);
      expect((await boots(made, runId)).at(-1)).toMatchObject({ checkpoint: expect.stringContaining("step-000002") });
    });
    expect(digest).toBe(await reference());
  });

  test("with its checkpoints: made again from the seed, to the same weights", async () => {
    const digest = await lastDigest(2, async (made, runId) => {
      await untilStep(made, runId, 3);
      made.gpu.loseCheckpoints();
      await made.gpu.restart();
      await made.until("adopted", async () => (await boots(made, runId)).length > 1);
      expect((await boots(made, runId)).at(-1)).toMatchObject({ checkpoint: null, replayed: 3 });
    });
    expect(digest).toBe(await reference());
  });

  test("between forward_backward and optim_step: the step is trained once, to the same weights", async () => {
    const digest = await lastDigest(100, async (made) => {
      made.gpu.fail({ path: /optim_step/, kind: "hang" });
      await made.until("optim_step sent", async () => made.gpu.stats.requests.get("/api/v1/optim_step"));
      await made.gpu.restart();
    });
    expect(digest).toBe(await reference());
  });

  test("without starting anew: the run notices and has it made again", async () => {
    const digest = await lastDigest(100, async (made, runId) => {
      await untilStep(made, runId, 2);
      made.gpu.forget();
      await made.until("adopted", async () => (await boots(made, runId)).length > 1);
    });
    expect(digest).toBe(await reference());
  });
});

test("a server of somebody else's that goes under a run is named on its page, and the run fails after its bound", async () => {
  rig = await startRig({ delayMs: 20 });
  const made = rig;
  const { url } = made.gpu;
  const runId = await made.launch({ ...trainer(100, 50), backend: { endpoint: url, awayMinutes: 0.1 } });
  await untilStep(made, runId, 1);
  await made.gpu.pause();
  const waitingFor = await made.until(
    "the absence is on the page",
    async () => (await readRun(made.database.pool, runId)).waitingFor,
  );
  expect(waitingFor).toMatchObject({ address: url, reason: "connection refused", limitMinutes: 0.1 });
  expect((await made.status(runId)).status).toBe("running");
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("failed");
  const { reason } = await made.status(runId);
  expect(reason).toMatch(/has not answered for 0\.1 min .*connection refused/);
  expect(reason).toContain(url);
});

test("the model of a run that is over is freed, its last version saved", async () => {
  rig = await startRig({ delayMs: 20 });
  const made = rig;
  const runId = await made.launch(trainer(100, 50));
  await untilStep(made, runId, 1);
  await moveRun(made.database.pool, runId, "stopping", null);
  await made.untilStatus(runId, "stopped");
  await made.until("freed", async () => made.gpu.models().length === 0);
  const version = await made.value("select serving_version from runs where id = $1", [runId]);
  expect(await made.value("select max(version) from checkpoints where run_id = $1", [runId])).toBe(version);
});

test("a run whose last step is cancelled keeps the version of its last update", async () => {
  rig = await startRig({ delayMs: 20 });
  const made = rig;
  const runId = await made.launch(trainer(100, 3));
  const cancelled = async () => {
    const sql = "select id from steps where run_id = $1 and step = 3 and state = 'gathering'";
    const stepId = await made.value(sql, [runId]);
    if (typeof stepId !== "string") return false;
    await cancelStep(made.database.pool, stepId, "nobody needs it");
    return true;
  };
  await made.until("the last step is cancelled", cancelled);
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  await made.until("freed", async () => made.gpu.models().length === 0);
  expect(await made.value("select serving_version from runs where id = $1", [runId])).toBe(2);
  expect(await made.value("select max(version) from checkpoints where run_id = $1", [runId])).toBe(2);
});

test("a last version that takes long to save is saved all the same, and the sweep goes on meanwhile", async () => {
  rig = await startRig({ delayMs: 20, saveMs: 13_000 });
  const made = rig;
  const runId = await made.launch(trainer(100, 50));
  await untilStep(made, runId, 1);
  await moveRun(made.database.pool, runId, "stopping", null);
  await made.untilStatus(runId, "stopped");
  const saves = () => made.gpu.stats.requests.get("/api/v1/save_weights") ?? 0;
  await made.until("it is being saved", async () => saves() === 1);
  // What only the sweep finds: a run that nobody was told of.
  const { runId: other } = await createRun(made.database.pool, { config: RunConfig.parse(trainer(10_000, 5_000)) });
  await made.until("the sweep found the other run", async () => (await made.status(other)).status === "running", 9_000);
  await made.until("freed", async () => {
    return (await made.value("select model_boot_id from runs where id = $1", [runId])) === null;
  });
  const version = await made.value("select serving_version from runs where id = $1", [runId]);
  expect(await made.value("select max(version) from checkpoints where run_id = $1", [runId])).toBe(version);
  expect(saves()).toBe(1);
});

test("a run keeps its newest checkpoints", async () => {
  rig = await startRig();
  const made = rig;
  const runId = await made.launch(trainer(1, 4));
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows } = await made.database.pool.query(
    "select version from checkpoints where run_id = $1 and state = 'complete' order by version",
    [runId],
  );
  expect(rows.map(({ version }) => version)).toEqual([3, 4]);
});

test("an update whose answer was lost is not made twice", async () => {
  rig = await startRig();
  const made = rig;
  made.gpu.fail({ path: /optim_step/, kind: "lost-answer" });
  made.gpu.fail({ path: /forward_backward/, kind: "lost-answer" });
  const runId = await made.launch(trainer(1, 3));
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(made.gpu.stats.requests.get("/api/v1/optim_step")).toBe(4);
  expect(await made.value("select sum(update_failures)::int from steps where run_id = $1", [runId])).toBe(0);
});

test("a server that is late is waited for, and its boot is told in phases", async () => {
  rig = await startRig();
  const made = rig;
  await made.gpu.pause();
  const runId = await made.launch(trainer(100, 1));
  await made.until("told", async () =>
    (await made.events(runId)).some((body) => body.type === "boot-progress" && body.phase === "waiting-for-worker"),
  );
  await made.gpu.resume();
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  const phases = (await made.events(runId)).flatMap((body) => (body.type === "boot-progress" ? [body.phase] : []));
  expect([...new Set(phases)]).toEqual(["waiting-for-worker", "create-model", "first-version", "ready"]);
  expect(await made.value("select prepare_failures from runs where id = $1", [runId])).toBe(0);
});

describe("warm start", () => {
  const warm = { ...trainer(100, 1), model: { name: "quickstart", warmStart: { steps: 5, demosPerStep: 8 } } };

  test("is trained once per content, with its progress, and then found", async () => {
    rig = await startRig();
    const made = rig;
    const first = await made.launch(warm);
    expect(await made.untilStatus(first, "completed", "failed")).toBe("completed");
    const trained = made.gpu.stats.requests.get("/api/v1/forward_backward");
    const steps = (await made.events(first)).flatMap((body) =>
      body.type === "boot-progress" && body.phase === "warm-start" ? [body] : [],
    );
    expect(steps.at(-1)).toMatchObject({ done: 5, total: 5, unit: "steps" });
    const second = await made.launch(warm);
    expect(await made.untilStatus(second, "completed", "failed")).toBe("completed");
    expect(made.gpu.stats.requests.get("/api/v1/forward_backward")).toBe((trained ?? 0) + 1);
    const other = await made.launch({ ...warm, seed: 2 });
    expect(await made.untilStatus(other, "completed", "failed")).toBe("completed");
    expect(made.gpu.stats.requests.get("/api/v1/forward_backward")).toBe((trained ?? 0) + 1 + 6);
  });

  test("that was interrupted by the server is done again", async () => {
    rig = await startRig({ futureMs: 100 });
    const made = rig;
    const runId = await made.launch(warm);
    await made.until("warm start", async () => (made.gpu.stats.requests.get("/api/v1/forward_backward") ?? 0) >= 2);
    await made.gpu.restart();
    expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect(await made.value("select prepare_failures from runs where id = $1", [runId])).toBe(0);
  });
});
