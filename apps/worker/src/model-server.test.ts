/** The model server comes and goes; the run's rows say what its model is, and the model is made that again. */
import { afterEach, describe, expect, test } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

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

describe("a model server that starts anew", () => {
  test.each([
    ["before any checkpoint: from the seed", 100, 0],
    ["after a checkpoint: from it, then the later steps", 2, 2],
  ])("%s, to the same weights", async (_what, every, checkpoint) => {
    rig = await startRig({ delayMs: 40 });
    const made = rig;
    const runId = await made.launch(trainer(every, 6));
    await untilStep(made, runId, 3);
    const before = made.gpu.models()[0];
    await made.gpu.restart({ downMs: 300 });
    await made.until("adopted", async () => (await boots(made, runId)).length > 1);
    const digests = new Map([[before?.step, before?.digest]]);
    expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect(await made.value("select step from runs where id = $1", [runId])).toBe(6);
    const adopted = (await boots(made, runId)).at(-1);
    expect(adopted).toMatchObject(
      checkpoint === 0 ? { checkpoint: null } : { checkpoint: expect.stringContaining("step-") },
    );
    expect(made.gpu.models().at(-1)?.step).toBe(6);
    expect(digests.size).toBe(1);
    expect(await made.value("select max(attempt) from rollouts where run_id = $1", [runId])).toBe(1);
  });

  test("between forward_backward and optim_step: the step is trained once, to the same weights", async () => {
    const digest = async (interrupted: boolean): Promise<string> => {
      const made = await startRig();
      try {
        if (interrupted) made.gpu.fail({ path: /optim_step/, kind: "hang" });
        const runId = await made.launch(trainer(100, 2));
        if (interrupted) {
          await made.until("optim_step sent", async () => made.gpu.stats.requests.get("/api/v1/optim_step"));
          await made.gpu.restart();
        }
        expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
        expect(await made.value("select count(*)::int from training_rows where run_id = $1", [runId])).toBe(16);
        return made.gpu.models().at(-1)?.digest ?? "";
      } finally {
        await made.close();
      }
    };
    expect(await digest(true)).toBe(await digest(false));
  });
});

test("an update whose answer was lost is not made twice", async () => {
  rig = await startRig();
  const made = rig;
  made.gpu.fail({ path: /optim_step/, kind: "lost-answer" });
  made.gpu.fail({ path: /forward_backward/, kind: "lost-answer" });
  const runId = await made.launch(trainer(1, 3));
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(made.gpu.models().map(({ step }) => step)).toEqual([3]);
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
