/** Trainers that are launched with their runs, as jobs of a real Ray: VeRL's to the end, one that fails, one that is stopped. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { readLaunchedTrainer } from "@rolldeck/db/driven/trainer-jobs";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { connectRayJobs, type RayJobs } from "@rolldeck/fleet/ray/ray-jobs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectSampledByVersionBefore, expectWeightsChanged } from "../real/trained-versions.ts";
import { type StartedRay, startRay } from "../stack/started-ray.ts";
import { type Bridge, type BridgeScene, startBridgeScene } from "./testing/bridge-scene.ts";
import { bridgeEnv, bridgeFolder } from "./testing/trainer-process.ts";
import { awayMinutes, gatewayAddress, verlPython } from "./testing/verl-engines.ts";

const steps = 2;
let ray: StartedRay;
let jobs: RayJobs;
let scene: BridgeScene;

/** The operator's list: VeRL's test loop, a command that fails and one that never ends. */
const open: Bridge["open"] = async ({ folder, policy, trainerEnv }) => {
  const { endpoint, env } = await gatewayAddress();
  const loop = `exec ${verlPython()} ${path.join(bridgeFolder("verl"), "testing/train_loop.py")} ${folder}/settings.json`;
  const entry = (name: string, entrypoint: string, engines: string) => ({
    ...{ name, backend: "verl", entrypoint, ray: { url: ray.url, tokenEnv: "RAY" }, engines: { urls: [engines] } },
    runtimeEnv: { env_vars: { ...bridgeEnv("verl", folder), ...env } },
    rolldeck: { url: trainerEnv.ROLLDECK_URL, tokenEnv: "TRAINER" },
  });
  const list = [
    entry("verl-loop", loop, endpoint),
    entry("broken", 'echo "last words of $ROLLDECK_RUN, token $ROLLDECK_TOKEN"; exit 3', policy),
    entry("endless", "exec sleep 600", policy),
  ];
  const file = path.join(folder, "trainers.json");
  writeFileSync(file, JSON.stringify(list));
  const workerEnv = { ROLLDECK_TRAINERS: file, RAY: ray.token, TRAINER: trainerEnv.ROLLDECK_TOKEN };
  return { backend: { name: "verl", server: "verl-loop", awayMinutes }, workerEnv };
};

beforeAll(async () => {
  ray = await startRay();
  jobs = connectRayJobs(ray);
  scene = await startBridgeScene({ name: "verl", python: verlPython(), open });
});
afterAll(async () => {
  await scene?.close();
  await ray?.stop();
});

const attemptsOf = async (runId: string) => (await readLaunchedTrainer(scene.rig.database.pool, runId)).attempts;
const untilJob = (runId: string, attempt: number, ...states: string[]) =>
  scene.rig.until(
    `attempt ${attempt} is ${states.join(" or ")}`,
    async () =>
      (await attemptsOf(runId)).find((each) => each.attempt === attempt && states.includes(each.state)) ?? null,
    180_000,
  );

test("VeRL is launched with its run, drives it to its end, and its log is kept", async () => {
  scene.settings({ steps, groups: 2, samples: 4, learningRate: 0.1 });
  const runId = await scene.launch(steps);
  const ends = async () => ["completed", "failed", "paused"].includes((await scene.rig.status(runId)).status);
  await scene.rig.until("the run ends", ends, 280_000);
  expect(await scene.rig.status(runId), JSON.stringify(await attemptsOf(runId))).toMatchObject({ status: "completed" });
  const ended = await untilJob(runId, 1, "succeeded", "failed");
  expect(ended).toMatchObject({ state: "succeeded", trainer: "verl-loop", submissionId: `rolldeck-${runId}-1` });
  expect(ended.logTail).toContain('STEP {"step": 2');
  expect(await attemptsOf(runId)).toHaveLength(1);
  await expectSampledByVersionBefore(scene.rig.database.pool, runId, steps);
  expectWeightsChanged([0, 1, 2].map(scene.weightsOf));
  const told = (await scene.rig.events(runId)).flatMap((body) => (body.type === "trainer-job" ? [body.state] : []));
  expect(told.filter((state) => state !== "pending")).toEqual(["submitting", "running", "succeeded"]);
}, 400_000);

test("one that fails pauses its run with the cause and its last words; going on is the next attempt", async () => {
  const { rig } = scene;
  const runId = await scene.launch(steps, { name: "verl", server: "broken" });
  const failed = await untilJob(runId, 1, "failed");
  expect(failed.message).toMatch(/^exit status 3/);
  expect(failed.logTail).toContain(`last words of ${runId}, token [key]`);
  expect(await rig.untilStatus(runId, "paused")).toBe("paused");
  expect((await rig.status(runId)).reason).toMatch(
    /^the launched trainer \(broken\) ended before the run: failed, exit/,
  );
  await moveRun(rig.database.pool, runId, "queued", null);
  await untilJob(runId, 2, "failed");
  await rig.untilStatus(runId, "paused");
  expect(await attemptsOf(runId)).toHaveLength(2);
  expect((await jobs.list()).filter(({ metadata }) => metadata.run === runId)).toHaveLength(2);
}, 300_000);

test("one whose run is stopped is stopped", async () => {
  const { rig } = scene;
  const runId = await scene.launch(steps, { name: "verl", server: "endless" });
  const { submissionId } = await untilJob(runId, 1, "running");
  await rig.untilStatus(runId, "running");
  await moveRun(rig.database.pool, runId, "stopping", "enough");
  await untilJob(runId, 1, "stopped");
  expect((await jobs.status(submissionId)).state).toBe("stopped");
  expect(await rig.untilStatus(runId, "stopped", "paused")).toBe("stopped");
}, 300_000);
