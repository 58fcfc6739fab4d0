/** Servers that speak the protocol and nothing of ours: no journal, no step, no boot id, and room that is used again. */
import { InputError } from "@rolldeck/contracts/errors";
import type { StepBackend } from "@rolldeck/contracts/ports/backend";
import { afterEach, beforeEach, expect, test } from "vitest";
import { adam, datum, never, ppo, sampleRequest } from "../../testing/conformance.ts";
import { type ScriptedWorker, startScriptedWorker } from "../../testing/scripted-worker.ts";
import { connectTinker, type TinkerOptions } from "./connect.ts";

const fence = { runId: "run", token: 1 };

let worker: ScriptedWorker;
let backend: StepBackend;
beforeEach(async () => {
  worker = await startScriptedWorker({ foreign: true });
  backend = connect();
});
afterEach(async () => {
  await backend.close();
  await worker.close();
});

const connect = (options: Partial<TinkerOptions> = {}): StepBackend =>
  connectTinker({ url: worker.url, apiKey: worker.apiKey, dialect: "skyrl", backoffMs: 5, ...options });
const newModel = () => backend.createModel({ baseModel: "quickstart", seed: 1, loraRank: 4, fence });
const sent = (name: string): number => worker.stats.requests.get(`/api/v1/${name}`) ?? 0;

test("an update, a sampler and a checkpoint; the version that samples carry is the caller's", async () => {
  expect(backend.recovery).toBe("by-checkpoint");
  const model = await newModel();
  const { logprobs } = await model.forwardBackward([datum(), datum(-0.5)], ppo, 1);
  expect(logprobs.map((values) => values.length)).toEqual([4, 4]);
  await model.optimStep(adam, { seqId: 2, expectStep: 0 });
  const saved = await model.saveWeightsForSampler(3);
  expect(saved.weightVersion).toBe(1);
  const sample = await backend.sampler({ ...saved, policyVersion: 7 }).sample(sampleRequest(), never());
  expect(sample.policyVersion).toBe(7);
  expect((await model.saveWeights("one", 4)).bytes).not.toBeUndefined();
  await expect(model.state()).rejects.toMatchObject({ code: "unsupported" });
  expect(model.deleteWeights).toBeUndefined();
});

test.each(["lost-answer", "reset", "error"] as const)("%s: a training request is never sent twice", async (kind) => {
  const model = await newModel();
  const before = sent("optim_step");
  worker.fail({ path: /forward_backward|optim_step/, kind, times: 2 });
  await expect(model.forwardBackward([datum()], ppo, 1)).rejects.toMatchObject({ boundary: "model-server" });
  await expect(model.optimStep(adam, { seqId: 2, expectStep: 0 })).rejects.toMatchObject({ boundary: "model-server" });
  expect(sent("forward_backward")).toBe(1);
  expect(sent("optim_step")).toBe(before + 1);
});

test("asking for a result is repeated; a result that the server lost is not made again", async () => {
  const model = await newModel();
  worker.fail({ path: /retrieve_future/, kind: "reset", times: 3 });
  await model.forwardBackward([datum()], ppo, 1);
  worker.fail({ path: /retrieve_future/, kind: "lost-future" });
  await expect(model.forwardBackward([datum()], ppo, 2)).rejects.toMatchObject({ code: "future_lost" });
  expect(sent("forward_backward")).toBe(2);
});

test("a new model is new, though one that was unloaded left its gradient in its place", async () => {
  const [clean, left] = [await newModel(), await newModel()];
  await left.forwardBackward([datum(0.25)], ppo, 1);
  await left.unload?.();
  const next = await newModel();
  for (const model of [clean, next]) {
    await model.forwardBackward([datum()], ppo, 1);
    await model.optimStep(adam, { seqId: 2, expectStep: 0 });
  }
  const [one, other] = worker.models().map(({ digest }) => digest);
  expect(one).toBe(other);
});

test("a model that could not be made new keeps no place", async () => {
  worker.fail({ path: /optim_step/, kind: "reset" });
  await expect(newModel()).rejects.toMatchObject({ code: "unreachable" });
  expect(worker.models()).toEqual([]);
});

test("a restart shows at the next request that names the model or its sampler, and checkpoints outlive it", async () => {
  const model = await newModel();
  await model.forwardBackward([datum()], ppo, 1);
  await model.optimStep(adam, { seqId: 2, expectStep: 0 });
  const { path } = await model.saveWeights("step-1", 3);
  const { samplingSessionId } = await model.saveWeightsForSampler(4);
  const [before] = worker.models();
  const boot = (await backend.info()).bootId;
  await worker.restart();
  expect((await backend.info()).bootId).toBe(boot);
  await expect(model.forwardBackward([datum()], ppo, 5)).rejects.toMatchObject({ code: "unknown_model" });
  const sampling = backend.sampler({ samplingSessionId, policyVersion: 1 }).sample(sampleRequest(), never());
  await expect(sampling).rejects.toMatchObject({ code: "unknown_model" });
  const again = await newModel();
  await again.loadWeights(path, { optimizer: true, seqId: 1 });
  expect(worker.models()[0]?.digest).toBe(before?.digest);
});

test("a name that the server does not serve is refused; a folder is known by its last part", async () => {
  const refused = backend.createModel({ baseModel: "another", seed: 1, loraRank: 4, fence });
  await expect(refused).rejects.toBeInstanceOf(InputError);
  await expect(refused).rejects.toThrow("serves quickstart, not another");
  expect(sent("create_model")).toBe(0);
  const named = connect({ model: "/models/quickstart" });
  await named.createModel({ baseModel: "another", seed: 1, loraRank: 4, fence });
  await named.close();
});
