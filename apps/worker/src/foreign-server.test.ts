/**
 * Runs on a server that speaks the Tinker protocol as SkyRL's does: it tells neither a model's step nor that it restarted. Whatever goes
 * wrong, every stored update is in the weights once.
 */
import { keyChainPolicy } from "@rolldeck/backends/testing/scripted-worker";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { readTrainingRows } from "@rolldeck/db/training/training-rows";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";
import { forwardBackwardRows, stepModel } from "./training/apply-rows.ts";

vi.setConfig({ testTimeout: 120_000 });

const steps = 3;
let rig: Rig;
afterEach(() => rig.close());

/** Some rollouts answer too early, so that groups have something to teach. */
const policy = keyChainPolicy({ skill: 0.6 });

const configOn = (url: string): RunConfig => {
  const change: Partial<RunConfigInput> = {
    backend: { name: "tinker", dialect: "skyrl", lora: { rank: 4 }, endpoint: url },
    algorithm: { dualClip: null, gradClipNorm: 0 },
    checkpoints: { every: 1, keep: 10 },
    budget: { steps },
  };
  return RunConfig.parse(smokeConfig(change));
};

async function started() {
  rig = await startRig({ foreign: true, policy });
  const config = configOn(rig.gpu.url);
  return { config, runId: await rig.launch(config) };
}

/** Digest of the run's last checkpoint, and of a model that had the stored rows of every step once, in order. */
async function digests(runId: string, config: RunConfig) {
  const { url, apiKey } = rig.gpu;
  const backend = connectTinker({ url, apiKey, dialect: "skyrl" });
  const fence = { runId: "again", token: 1 };
  const newModel = () => backend.createModel({ baseModel: "quickstart", seed: config.seed, loraRank: 4, fence });
  const [last, again] = [await newModel(), await newModel()];
  const path = await rig.value("select path from checkpoints where run_id = $1 and version = $2", [runId, steps]);
  await last.loadWeights(String(path), { optimizer: true, seqId: 1 });
  const stored = await readTrainingRows(rig.database.pool, runId, 1, steps);
  expect(stored.map(({ step }) => step)).toEqual([1, 2, 3]);
  for (const { rows } of stored) {
    expect(rows.some(({ sent }) => sent)).toBe(true);
    await forwardBackwardRows(again, rows, config, async () => 1);
    await stepModel(again, rows, config, { step: 1, seqId: 1, expectStep: 0 });
  }
  await backend.close();
  const digestOf = (modelId: string) => rig.gpu.models().find((model) => model.modelId === modelId)?.digest;
  return { kept: digestOf(last.modelId), once: digestOf(again.modelId) };
}

async function expectTrainedOnce(runId: string, config: RunConfig): Promise<void> {
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { kept, once } = await digests(runId, config);
  expect(kept).toBe(once);
  expect(kept).not.toBeUndefined();
  const { rows } = await rig.database.pool.query(
    `select distinct s.step, t.policy_version as version from steps s join rollouts r on r.step_id = s.id
       join transitions t on t.rollout_id = r.id and t.attempt = r.attempt where s.run_id = $1 order by 1`,
    [runId],
  );
  expect(rows).toEqual([1, 2, 3].map((step) => ({ step, version: step - 1 })));
  expect(rig.gpu.stats.outdated).toBe(0);
}

const adoptions = async (runId: string) =>
  (await rig.events(runId)).flatMap((body) => (body.type === "model-adopted" ? [body] : []));

test("trains, samples each step from the version before it, and frees the model's place", async () => {
  const { config, runId } = await started();
  await expectTrainedOnce(runId, config);
  expect(await adoptions(runId)).toHaveLength(1);
  await rig.until(
    "the model is unloaded",
    async () => (await rig.value("select model_boot_id from runs where id = $1", [runId])) === null,
  );
});

test.each(["forward_backward", "optim_step", "save_weights_for_sampler"])(
  "the answer of the second step's %s is lost: from its checkpoint again, nothing trained twice",
  async (request) => {
    const { config, runId } = await started();
    await rig.until(
      "the first step is done",
      async () => (await rig.value("select step from runs where id = $1", [runId])) === 1,
    );
    rig.gpu.fail({ path: new RegExp(`/${request}$`), kind: "lost-answer" });
    await expectTrainedOnce(runId, config);
    expect((await adoptions(runId)).length).toBeGreaterThan(1);
  },
);

test("a server that restarts during a step's rollouts: the version that served serves again", async () => {
  const { config, runId } = await started();
  await rig.until(
    "the first step is done",
    async () => (await rig.value("select step from runs where id = $1", [runId])) === 1,
  );
  await rig.gpu.restart();
  await expectTrainedOnce(runId, config);
  expect((await adoptions(runId)).at(-1)).toMatchObject({ replayed: 0 });
});

test("without its checkpoints, the seed and all stored rows make the model again", async () => {
  const { config, runId } = await started();
  await rig.until(
    "two steps are done",
    async () => (await rig.value("select step from runs where id = $1", [runId])) === 2,
  );
  rig.gpu.loseCheckpoints();
  await rig.gpu.restart();
  await expectTrainedOnce(runId, config);
  expect((await adoptions(runId)).at(-1)).toMatchObject({ checkpoint: null, replayed: 2 });
});

test("an evaluation on such a server needs no step of a model", async () => {
  rig = await startRig({ foreign: true, policy });
  const { backend } = configOn(rig.gpu.url);
  const runId = await rig.launch({ ...smokeConfig(), kind: "evaluate", backend, evaluation: { samples: 8 } });
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(rig.gpu.stats.requests.get("/api/v1/forward_backward")).toBeUndefined();
  expect(rig.gpu.stats.samples).toBeGreaterThan(8);
});
