/** What every step backend must do, asked through the port over real HTTP. */
import { randomUUID } from "node:crypto";
import { BoundaryError, FencedError } from "@rolldeck/contracts/errors";
import type { AdamSpec, StepBackend, TrainableModel, TrainingDatum } from "@rolldeck/contracts/ports/backend";
import { fixedPrompt, type SampleRequest } from "@rolldeck/contracts/ports/sampler";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

export interface BackendUnderTest {
  readonly name: string;
  start(): Promise<{ readonly backend: StepBackend; close(): Promise<void> }>;
  readonly baseModel: string;
  /** Where the dialect sends fences and expected steps. */
  readonly fenced: boolean;
}

export const ppo = { name: "ppo", config: { clip_low_threshold: 0.8, clip_high_threshold: 1.28 } };
export const adam: AdamSpec = {
  learningRate: 1e-3,
  beta1: 0.9,
  beta2: 0.95,
  eps: 1e-8,
  weightDecay: 0,
  gradClipNorm: 1,
};
export const never = (): AbortSignal => new AbortController().signal;

export const datum = (advantage = 0.5): TrainingDatum => ({
  inputs: [256, 102, 105, 110],
  targets: [102, 105, 110, 100],
  logprobs: [0, 0, -0.1, -0.2],
  advantages: [0, 0, advantage, advantage],
  weights: [0, 0, 1, 1],
});

/** "find a", rendered with the quickstart template. */
export const sampleRequest = (changes: Partial<SampleRequest> = {}): SampleRequest => ({
  affinityKey: "rollout-1",
  prompt: fixedPrompt([256, 102, 105, 110, 100, 32, 97, 259, 257]),
  tools: [],
  maxTokens: 32,
  temperature: 0.7,
  topP: 1,
  topK: -1,
  seed: 7,
  stopTokens: [259],
  ...changes,
});

export function describeBackend(subject: BackendUnderTest): void {
  describe(`step backend ${subject.name}`, () => {
    let backend: StepBackend;
    let close: () => Promise<void>;
    beforeAll(async () => {
      ({ backend, close } = await subject.start());
    });
    afterAll(() => close?.());

    const newModel = (runId = randomUUID(), token = 1): Promise<TrainableModel> =>
      backend.createModel({ baseModel: subject.baseModel, seed: 1, fence: { runId, token } });

    test("tells what it is", async () => {
      const info = await backend.info();
      expect(info.bootId).not.toBe("");
      expect(info.losses).toEqual(expect.arrayContaining(["cross_entropy", "importance_sampling", "ppo"]));
      expect((await backend.info()).bootId).toBe(info.bootId);
    });

    test("says of an engine at rest that it is, where its server tells at all", async () => {
      expect(await backend.load?.()).toEqual(backend.load && { running: 0, waiting: 0, cacheUse: 0 });
    });

    test("an update: forward_backward, optim_step, save for the sampler; samples carry the new version", async () => {
      const model = await newModel();
      const result = await model.forwardBackward([datum(), datum(-0.5)], ppo, 1);
      expect(result.logprobs.map((values) => values.length)).toEqual([4, 4]);
      const step = await model.optimStep(adam, { seqId: 2, expectStep: 0 });
      expect(step.step).toBe(1);
      const saved = await model.saveWeightsForSampler(3);
      expect(saved.weightVersion).toBe(1);
      const sample = await backend.sampler(saved).sample(sampleRequest(), never());
      expect(sample.policyVersion).toBe(1);
      expect(sample.logprobs).toHaveLength(sample.tokens.length);
      expect(sample.logprobs?.every((logprob) => Number.isFinite(logprob) && logprob <= 0)).toBe(true);
      if (sample.stopReason === "stop") expect(sample.tokens.at(-1)).toBe(259);
    });

    test("a sample never exceeds the tokens asked for, and says that it was cut", async () => {
      const model = await newModel();
      const { samplingSessionId } = await model.saveWeightsForSampler(1);
      const request = sampleRequest({ maxTokens: 1, stopTokens: [258] });
      const sample = await backend.sampler({ samplingSessionId }).sample(request, never());
      expect(sample.tokens).toHaveLength(1);
      if (sample.tokens[0] !== 258) expect(sample.stopReason).toBe("length");
    });

    test("older versions go on being sampled while the newest is", async () => {
      const model = await newModel();
      const first = await model.saveWeightsForSampler(1);
      await model.forwardBackward([datum()], ppo, 2);
      await model.optimStep(adam, { seqId: 3, expectStep: 0 });
      const second = await model.saveWeightsForSampler(4);
      expect([first.weightVersion, second.weightVersion]).toEqual([0, 1]);
      const versions = await Promise.all(
        [first, second, first].map(
          async (saved) => (await backend.sampler(saved).sample(sampleRequest(), never())).policyVersion,
        ),
      );
      expect(versions).toEqual([0, 1, 0]);
    });

    test("the same request again is answered from the journal, another under its number refused", async () => {
      const model = await newModel();
      const first = await model.forwardBackward([datum()], ppo, 1);
      expect(await model.forwardBackward([datum()], ppo, 1)).toEqual(first);
      await expect(model.forwardBackward([datum(0.25)], ppo, 1)).rejects.toMatchObject({ code: "conflict" });
      if (subject.fenced) expect((await model.state()).lastSeqId).toBe(1);
    });

    test("requests that arrive out of order run in order", async () => {
      const model = await newModel();
      const later = model.optimStep(adam, { seqId: 2, expectStep: 0 });
      const earlier = model.forwardBackward([datum()], ppo, 1);
      const [step] = await Promise.all([later, earlier]);
      expect(step.step).toBe(1);
    });

    test.runIf(subject.fenced)("an update on another step than expected is refused and applies nothing", async () => {
      const model = await newModel();
      await model.forwardBackward([datum()], ppo, 1);
      await expect(model.optimStep(adam, { seqId: 2, expectStep: 4 })).rejects.toMatchObject({ code: "step_mismatch" });
      expect((await model.state()).step).toBe(0);
    });

    test.runIf(subject.fenced)("from the moment a newer holder calls, the older one is fenced", async () => {
      const runId = randomUUID();
      const old = await newModel(runId, 1);
      await old.forwardBackward([datum()], ppo, 1);
      const adopted = backend.adoptModel({ modelId: old.modelId, fence: { runId, token: 2 } });
      await adopted.forwardBackward([datum()], ppo, 2);
      await expect(old.optimStep(adam, { seqId: 3, expectStep: 0 })).rejects.toBeInstanceOf(FencedError);
      expect((await adopted.optimStep(adam, { seqId: 3, expectStep: 0 })).step).toBe(1);
    });

    test("checkpoints: loaded into a new model with their step, or as weights alone with none", async () => {
      const model = await newModel();
      await model.forwardBackward([datum()], ppo, 1);
      await model.optimStep(adam, { seqId: 2, expectStep: 0 });
      const { path, bytes } = await model.saveWeights("step-1", 3);
      if (subject.fenced) expect(bytes).toBeGreaterThan(0);
      const again = await newModel();
      await again.loadWeights(path, { optimizer: true, seqId: 1 });
      expect((await again.optimStep(adam, { seqId: 2, expectStep: 1 })).step).toBe(2);
      const afresh = await newModel();
      await afresh.loadWeights(path, { optimizer: false, seqId: 1 });
      expect((await afresh.optimStep(adam, { seqId: 2, expectStep: 0 })).step).toBe(1);
    });

    test("a checkpoint that is not there fails typed; a name is used once", async () => {
      const model = await newModel();
      const missing = model.loadWeights("tinker://model-gone/weights/nothing", { optimizer: true, seqId: 1 });
      await expect(missing).rejects.toBeInstanceOf(BoundaryError);
      await model.saveWeights("only", 1);
      await model.forwardBackward([datum()], ppo, 2);
      await model.optimStep(adam, { seqId: 3, expectStep: 0 });
      await expect(model.saveWeights("only", 4)).rejects.toMatchObject({ code: "conflict" });
    });

    test.runIf(subject.fenced)("an abandoned gradient can be dropped", async () => {
      const model = await newModel();
      await model.forwardBackward([datum()], ppo, 1);
      await model.zeroGrad();
      expect((await model.optimStep(adam, { seqId: 2, expectStep: 0 })).step).toBe(1);
    });

    test("an unloaded model is gone, and unloading it twice does no harm", async () => {
      const model = await newModel();
      const { path } = await model.saveWeights("kept", 1);
      await model.unload?.();
      await model.unload?.();
      await expect(model.forwardBackward([datum()], ppo, 2)).rejects.toMatchObject({ code: "unknown_model" });
      const again = await newModel();
      await again.loadWeights(path, { optimizer: true, seqId: 1 });
    });

    test("a model that is not there fails typed, and so does a sampling session", async () => {
      const gone = backend.adoptModel({ modelId: "model-gone", fence: { runId: "r", token: 1 } });
      await expect(gone.forwardBackward([datum()], ppo, 1)).rejects.toMatchObject({
        boundary: "model-server",
        code: "unknown_model",
        retryable: false,
      });
      const sampler = backend.sampler({ samplingSessionId: "sampling-gone", policyVersion: 0 });
      await expect(sampler.sample(sampleRequest(), never())).rejects.toMatchObject({ boundary: "model-server" });
    });

    test("tokens outside the vocabulary are refused", async () => {
      const { samplingSessionId } = await (await newModel()).saveWeightsForSampler(1);
      const sampler = backend.sampler({ samplingSessionId });
      await expect(sampler.sample(sampleRequest({ prompt: fixedPrompt([9999]) }), never())).rejects.toMatchObject({
        code: "bad_input",
      });
    });

    test("128 samples at once", async () => {
      const { samplingSessionId } = await (await newModel()).saveWeightsForSampler(1);
      const sampler = backend.sampler({ samplingSessionId });
      const seeds = Array.from({ length: 128 }, (_, seed) => seed);
      const samples = await Promise.all(seeds.map((seed) => sampler.sample(sampleRequest({ seed }), never())));
      expect(samples.every((sample) => sample.policyVersion === 0)).toBe(true);
    });

    test("an aborted sample ends with the reason of its signal", async () => {
      const { samplingSessionId } = await (await newModel()).saveWeightsForSampler(1);
      const stop = new AbortController();
      const reason = new Error("stopped by the test");
      stop.abort(reason);
      await expect(backend.sampler({ samplingSessionId }).sample(sampleRequest(), stop.signal)).rejects.toBe(reason);
    });
  });
}
