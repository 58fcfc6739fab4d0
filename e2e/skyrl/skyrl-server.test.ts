/**
 * Runs on SkyRL's own Tinker server: its JAX backend on CPU, the quickstart task, an adapter. What is trained is what was sampled, and a
 * server that is killed costs time only.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { readTrainingRows } from "@rolldeck/db/training/training-rows";
import { tasks } from "@rolldeck/tasks/registry";
import { afterAll, beforeAll, expect, test } from "vitest";
import { forwardBackwardRows, stepModel } from "../../apps/worker/src/training/apply-rows.ts";
import { type Rig, smokeConfig, startRig } from "../../apps/worker/testing/rig.ts";
import { largestDifference } from "../real/exported-model.ts";
import { makeRandomModel } from "../real/random-model.ts";
import { expectSampledByVersionBefore, expectWeightsChanged } from "../real/trained-versions.ts";
import { samplerAdapters } from "./testing/adapters.ts";
import { optimizerSteps, skyrlPython } from "./testing/skyrl-python.ts";
import { type SkyrlServer, skyrlServer } from "./testing/skyrl-server.ts";

const root = path.resolve(import.meta.dirname, "../..");
const steps = 3;
const rank = 4;
const runLimitMs = 280_000;

/** An untrained policy earns nothing; rewards that differ give its gradient something to do. */
let graded = 0;
const coinToss = {
  ...tasks["key-chain"],
  verify: async () => ({ reward: graded++ % 2, success: false, parts: {}, notes: null }),
};

let folder: string;
let server: SkyrlServer;
let rig: Rig;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-skyrl-"));
  const model = path.join(folder, "quickstart");
  await makeRandomModel(skyrlPython(), path.join(root, "infra/models/quickstart"), model, 5);
  server = await skyrlServer({ folder, model });
  await server.start();
  rig = await startRig({ parts: { tasks: { "key-chain": coinToss } } });
});
afterAll(async () => {
  await rig?.close();
  await server?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const configFor = (seed: number): RunConfig =>
  RunConfig.parse(
    smokeConfig({
      seed,
      backend: { name: "tinker", dialect: "skyrl", lora: { rank }, endpoint: server.url },
      agent: { ...smokeConfig().agent, maxTurns: 3, sampling: { temperature: 1, maxTokensPerTurn: 16 } },
      // Every row is trained, so that a pass has as many as the server's micro-batch.
      algorithm: { dualClip: null, gradClipNorm: 0, trainCut: true, learningRate: 1e-2 },
      checkpoints: { every: 1, keep: 4 },
      budget: { steps },
    }),
  );

const value = async (sql: string, ...parameters: unknown[]) => rig.value(sql, parameters);
const stepOf = async (runId: string) => Number(await value("select step from runs where id = $1", runId));

async function completed(runId: string): Promise<void> {
  await rig.until(
    "the run ends",
    async () => ["completed", "failed"].includes((await rig.status(runId)).status),
    runLimitMs,
  );
  expect(await rig.status(runId)).toMatchObject({ status: "completed" });
}

/** The version that sampled each step's turns, and what the trainer said of the same tokens. */
async function expectSampledInOrder(runId: string): Promise<void> {
  await expectSampledByVersionBefore(rig.database.pool, runId, steps);
  const { rows: gaps } = await rig.database.pool.query(
    "select value from metric_points where run_id = $1 and name = 'policy/logprob-gap' order by step",
    [runId],
  );
  expect(gaps).toHaveLength(steps);
  console.info(`largest |trainer − sampler| of each step: ${gaps.map(({ value }) => value).join(", ")}`);
  for (const { value: gap } of gaps) expect(gap).toBeLessThan(1e-3);
}

/** The stored rows, each once and in order, on a model that the run never saw. @returns its adapter */
async function onceMore(runId: string, config: RunConfig) {
  const backend = connectTinker({ url: server.url, apiKey: null, dialect: "skyrl" });
  const fence = { runId: "again", token: 1 };
  const options = { baseModel: config.model.name, seed: config.seed, loraRank: rank, fence };
  const model = await backend.createModel(options);
  let seqId = 0;
  const nextSeq = async () => ++seqId;
  for (const [at, { rows }] of (await readTrainingRows(rig.database.pool, runId, 1, steps)).entries()) {
    await forwardBackwardRows(model, rows, config, nextSeq);
    await stepModel(model, rows, config, { step: at + 1, seqId: await nextSeq(), expectStep: at });
  }
  await model.saveWeightsForSampler(await nextSeq());
  await model.unload?.();
  await backend.close();
  return (await samplerAdapters(server.checkpoints, model.modelId)).at(-1) ?? new Map();
}

test("three steps: each sampled by the version before it, each changes the adapter, log-probabilities agree", async () => {
  const config = configFor(1);
  const before = await optimizerSteps(server.database);
  const runId = await rig.launch(config);
  await completed(runId);
  await expectSampledInOrder(runId);
  expect((await optimizerSteps(server.database)) - before).toBe(steps);
  const modelId = String(await value("select model_id from runs where id = $1", runId));
  const versions = await samplerAdapters(server.checkpoints, modelId);
  expect(versions).toHaveLength(steps + 1);
  expectWeightsChanged(versions);
  expect(largestDifference(versions.at(-1) ?? new Map(), await onceMore(runId, config))).toBeLessThan(1e-6);
}, 300_000);

test("killed while a step is sampled and while one is updated: goes on from checkpoints, every step trained once", async () => {
  const config = configFor(2);
  const runId = await rig.launch(config);
  await rig.until("the second step is sampled", async () => (await stepOf(runId)) === 1, runLimitMs);
  await server.kill();
  await server.start();
  const updating =
    "select count(*)::int from steps where run_id = $1 and step = 3 and state = 'updating' and worker_id is not null";
  await rig.until("the third step is updated", async () => (await value(updating, runId)) === 1, runLimitMs);
  await server.kill();
  await server.start();
  await completed(runId);
  await expectSampledInOrder(runId);
  const adopted = (await rig.events(runId)).flatMap((body) => (body.type === "model-adopted" ? [body] : []));
  expect(adopted.length).toBeGreaterThanOrEqual(3);
  for (const body of adopted.slice(1))
    expect(body).toMatchObject({ checkpoint: expect.stringContaining("-step-"), replayed: 0 });
  const modelId = String(await value("select model_id from runs where id = $1", runId));
  const last = (await samplerAdapters(server.checkpoints, modelId)).at(-1) ?? new Map();
  expect(largestDifference(last, await onceMore(runId, config))).toBeLessThan(1e-6);
}, 300_000);
