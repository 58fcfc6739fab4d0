/** The real GPU worker, killed between forward_backward and optim_step: what is made again equals what would have been. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { presets } from "@rolldeck/contracts/presets";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { createRun } from "@rolldeck/db/runs/create-run";
import { createTestDatabase } from "@rolldeck/db/testing/postgres";
import { readTrainingRows } from "@rolldeck/db/training/training-rows";
import { tasks } from "@rolldeck/tasks/registry";
import { afterEach, expect, test, vi } from "vitest";
import { compose } from "../../apps/worker/src/compose.ts";
import { parseWorkerEnv } from "../../apps/worker/src/env.ts";
import { forwardBackwardRows, stepModel } from "../../apps/worker/src/training/apply-rows.ts";
import { gpuWorkerKey, startRealGpuWorker } from "./real-gpu-worker.ts";

const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.reverse()) await step();
  cleanUp.length = 0;
});

/** An untrained policy earns nothing; rewards that differ give its gradient something to do. */
let graded = 0;
const coinToss = {
  ...tasks["key-chain"],
  verify: async () => ({ reward: graded++ % 2, success: false, parts: {}, notes: null }),
};

const config = RunConfig.parse({
  ...presets.smoke.config,
  algorithm: { ...presets.smoke.config.algorithm, trainCut: true, learningRate: 1e-2 },
  checkpoints: { every: 1, keep: 10 },
  budget: { steps: 4 },
});

/** Every tensor of a checkpoint's safetensors file, one after the other. */
async function weights(dataFolder: string, checkpoint: string): Promise<Float32Array> {
  const [model = "", kind = "", name = ""] = checkpoint.replace("tinker://", "").split("/");
  const folders = await readdir(dataFolder, { recursive: true });
  const file = folders.find((each) => each.endsWith(path.join(model, kind, name, "model.safetensors")));
  const bytes = await readFile(path.join(dataFolder, file ?? ""));
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  return new Float32Array(Uint8Array.from(bytes.subarray(start)).buffer);
}

const largestGap = (a: Float32Array, b: Float32Array): number =>
  a.length === b.length
    ? a.reduce((gap, value, at) => Math.max(gap, Math.abs(value - (b[at] ?? Number.NaN))), 0)
    : Number.NaN;

test("killed between forward_backward and optim_step: replays to weights equal within 1e-6", async () => {
  const dataFolder = await mkdtemp(path.join(tmpdir(), "rolldeck-gpu-"));
  cleanUp.push(() => rm(dataFolder, { recursive: true, force: true }));
  const database = await createTestDatabase();
  cleanUp.push(() => database.drop());
  const gpu = await startRealGpuWorker(dataFolder);
  cleanUp.push(() => gpu.close());
  const env = {
    ROLLDECK_DATABASE_URL: database.url,
    ROLLDECK_GPU_WORKER_URL: gpu.url,
    ROLLDECK_GPU_WORKER_KEY: gpuWorkerKey,
    ROLLDECK_LOG_LEVEL: "error",
  };
  const worker = await compose(parseWorkerEnv(env, import.meta.dirname), { tasks: { "key-chain": coinToss } });
  await worker.start();
  cleanUp.push(() => worker.stop());

  const killed = gpu.killBefore("/api/v1/optim_step", 3);
  const { runId } = await createRun(database.pool, { config });
  await killed;
  const { rows: before } = await database.pool.query("select path from checkpoints where run_id = $1 and version = 2", [
    runId,
  ]);
  // Without a checkpoint to start from, both finished steps have to be replayed from their rows. The rows alone go: of a
  // checkpoint that is `pruned`, the worker's sweep deletes the files too, and the reference below starts from those.
  await database.pool.query("delete from checkpoints where run_id = $1", [runId]);
  await gpu.start();
  const status = async () =>
    (await database.pool.query("select status from runs where id = $1", [runId])).rows[0].status;
  await vi.waitFor(async () => expect(await status()).toBe("completed"), { timeout: 120_000, interval: 200 });
  const { rows: adopted } = await database.pool.query(
    "select body from events where run_id = $1 and type = 'model-adopted' order by seq desc limit 1",
    [runId],
  );
  expect(adopted[0]?.body).toMatchObject({ checkpoint: null, replayed: 2 });

  // The third update as it would have been: on the model that was killed, from its own checkpoint.
  const backend = connectTinker({ url: gpu.url, apiKey: gpuWorkerKey, dialect: "rolldeck" });
  cleanUp.push(() => backend.close());
  const fence = { runId: "reference", token: 1 };
  const reference = await backend.createModel({ baseModel: config.model.name, seed: 99, fence });
  await reference.loadWeights(before[0].path, { optimizer: true, seqId: 1 });
  const [third] = await readTrainingRows(database.pool, runId, 3, 3);
  expect(third?.rows.some((row) => row.sent)).toBe(true);
  await forwardBackwardRows(reference, third?.rows ?? [], config, async () => 2);
  await stepModel(reference, third?.rows ?? [], config, { step: 3, seqId: 3, expectStep: 2 });
  const { path: expected } = await reference.saveWeights("third", 4);
  const { rows: after } = await database.pool.query("select path from checkpoints where run_id = $1 and version = 3", [
    runId,
  ]);
  const [was, is] = [await weights(dataFolder, expected), await weights(dataFolder, after[0].path)];
  expect(largestGap(was, is)).toBeLessThanOrEqual(1e-6);
  // The step did move the weights: equal is not the same as untouched.
  expect(largestGap(was, await weights(dataFolder, before[0].path))).toBeGreaterThan(1e-4);
});
