import { setTimeout as sleep } from "node:timers/promises";
import { FencedError } from "@rolldeck/contracts/errors";
import type { StepBackend } from "@rolldeck/contracts/ports/backend";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { adam, datum, describeBackend, never, ppo, sampleRequest } from "../../testing/conformance.ts";
import { type ScriptedWorker, type ScriptedWorkerOptions, startScriptedWorker } from "../../testing/scripted-worker.ts";
import { connectTinker, type TinkerOptions } from "./connect.ts";
import { checkedSample } from "./sampler.ts";

const fence = { runId: "run", token: 1 };

async function connected(options: ScriptedWorkerOptions = {}, client: Partial<TinkerOptions> = {}) {
  const worker = await startScriptedWorker(options);
  const backend = connectTinker({
    url: worker.url,
    apiKey: worker.apiKey,
    dialect: "rolldeck",
    backoffMs: 5,
    ...client,
  });
  const close = async (): Promise<void> => {
    await backend.close();
    await worker.close();
  };
  return { worker, backend, close };
}

describeBackend({ name: "scripted worker", start: () => connected(), baseModel: "quickstart", fenced: true });
describeBackend({
  name: "scripted worker with slow futures",
  start: () => connected({ futureMs: 30, delayMs: 5 }),
  baseModel: "quickstart",
  fenced: true,
});

describe("when the server fails", () => {
  let worker: ScriptedWorker;
  let backend: StepBackend;
  let close: () => Promise<void>;
  beforeEach(async () => {
    ({ worker, backend, close } = await connected());
  });
  afterEach(() => close());

  const newModel = () => backend.createModel({ baseModel: "quickstart", seed: 1, fence });

  test.each(["error", "reset", "busy", "lost-answer"] as const)(
    "%s: the same request is sent again, applied once",
    async (kind) => {
      const model = await newModel();
      worker.fail({ path: /forward_backward|optim_step|retrieve_future/, kind, times: 3 });
      await model.forwardBackward([datum()], ppo, 1);
      await model.optimStep(adam, { seqId: 2, expectStep: 0 });
      expect(await model.state()).toMatchObject({ step: 1, lastSeqId: 2 });
      const { worker: clean, backend: reference, close: end } = await connected();
      const other = await reference.createModel({ baseModel: "quickstart", seed: 1, fence });
      await other.forwardBackward([datum()], ppo, 1);
      await other.optimStep(adam, { seqId: 2, expectStep: 0 });
      expect(worker.models()[0]?.digest).toBe(clean.models()[0]?.digest);
      await end();
    },
  );

  test("a future that the server lost is submitted again", async () => {
    const model = await newModel();
    worker.fail({ path: /retrieve_future/, kind: "lost-future", times: 2 });
    await model.forwardBackward([datum()], ppo, 1);
    expect(worker.stats.requests.get("/api/v1/forward_backward")).toBe(3);
    worker.fail({ path: /retrieve_future/, kind: "lost-future", times: 10 });
    await expect(model.optimStep(adam, { seqId: 2, expectStep: 0 })).rejects.toMatchObject({ code: "future_lost" });
  });

  test("samples are tried again after a failure", async () => {
    const { samplingSessionId } = await (await newModel()).saveWeightsForSampler(1);
    worker.fail({ path: /sample$/, kind: "reset", times: 2 });
    worker.fail({ path: /sample$/, kind: "error" });
    const waits: string[] = [];
    const onWait = ({ reason }: { reason: string }) => waits.push(reason);
    const sample = await backend.sampler({ samplingSessionId, onWait }).sample(sampleRequest(), never());
    expect(sample.stopReason).toBe("stop");
    expect(worker.stats.requests.get("/ext/v1/sample")).toBe(4);
    expect(waits).toHaveLength(3);
    expect(waits[2]).toContain("ordered");
  });

  test("a failure that lasts ends the call, retryable, with its cause", async () => {
    const impatient = connectTinker({
      url: worker.url,
      apiKey: worker.apiKey,
      dialect: "rolldeck",
      samplingOutageMs: 0,
    });
    const { samplingSessionId } = await (await newModel()).saveWeightsForSampler(1);
    await worker.pause();
    const sampling = impatient.sampler({ samplingSessionId }).sample(sampleRequest(), never());
    await expect(sampling).rejects.toMatchObject({ boundary: "model-server", code: "unreachable", retryable: true });
    await expect(sampling).rejects.toHaveProperty("cause");
    await worker.resume();
    await impatient.close();
  });

  test("a Retry-After beyond reason fails at once and says when; a short one is waited out", async () => {
    worker.fail({ path: /create_session/, kind: "busy", retryAfter: "1209600" });
    await expect(newModel()).rejects.toMatchObject({ code: "busy", retryable: true, retryAfterMs: 1_209_600_000 });
    // Whoever comes next learns it without asking.
    await expect(newModel()).rejects.toMatchObject({ code: "busy" });
    expect(worker.stats.requests.get("/api/v1/create_session")).toBe(1);
    const another = connectTinker(options());
    worker.fail({ path: /create_session/, kind: "busy", retryAfter: "0" });
    worker.fail({ path: /create_session/, kind: "busy", retryAfter: "abc" });
    await another.createModel({ baseModel: "quickstart", seed: 1, fence });
    expect(worker.stats.requests.get("/api/v1/create_session")).toBe(4);
    await another.close();
  });

  test("a refusal is not repeated", async () => {
    const wrongKey = connectTinker({ url: worker.url, apiKey: "tml-wrong", dialect: "rolldeck" });
    await expect(wrongKey.info()).rejects.toMatchObject({ code: "unauthorised", retryable: false });
    expect(worker.stats.requests.get("/ext/v1/info")).toBe(1);
    await wrongKey.close();
  });

  test("waiting can be ended at any moment: during a sample, a poll and a back-off", async () => {
    const { samplingSessionId } = await (await newModel()).saveWeightsForSampler(1);
    for (const kind of ["hang", "busy"] as const) {
      worker.fail({ path: /sample$/, kind, times: 1000, retryAfter: "1" });
      const stop = new AbortController();
      const patient = connectTinker({ ...options(), samplingOutageMs: 60_000 });
      const sampling = patient.sampler({ samplingSessionId }).sample(sampleRequest(), stop.signal);
      await sleep(30);
      stop.abort(new Error(`enough of ${kind}`));
      await expect(sampling).rejects.toThrow(`enough of ${kind}`);
      await patient.close();
    }
    const stop = new AbortController();
    const model = await backend.createModel({ baseModel: "quickstart", seed: 1, fence, signal: stop.signal });
    worker.fail({ path: /retrieve_future/, kind: "hang" });
    const update = model.forwardBackward([datum()], ppo, 1);
    await sleep(30);
    stop.abort(new Error("the claim is lost"));
    await expect(update).rejects.toThrow("the claim is lost");
  });

  const options = () => ({ url: worker.url, apiKey: worker.apiKey, dialect: "rolldeck" as const, backoffMs: 5 });

  test("after a restart: another boot id, models gone, checkpoints there, a replay that ends with equal weights", async () => {
    const model = await newModel();
    await model.forwardBackward([datum()], ppo, 1);
    await model.optimStep(adam, { seqId: 2, expectStep: 0 });
    const { path } = await model.saveWeights("step-1", 3);
    await model.forwardBackward([datum(0.25)], ppo, 4);
    await model.optimStep(adam, { seqId: 5, expectStep: 1 });
    const [before] = worker.models();
    const boot = (await backend.info()).bootId;
    await worker.restart();
    expect((await backend.info()).bootId).not.toBe(boot);
    await expect(model.forwardBackward([datum()], ppo, 6)).rejects.toMatchObject({ code: "unknown_model" });

    const again = await backend.createModel({ baseModel: "quickstart", seed: 1, fence: { runId: "run", token: 2 } });
    await again.loadWeights(path, { optimizer: true, seqId: 1 });
    await again.forwardBackward([datum(0.25)], ppo, 2);
    await again.optimStep(adam, { seqId: 3, expectStep: 1 });
    expect(worker.models()[0]).toMatchObject({ step: 2, digest: before?.digest });
  });

  test("an answer lost on the way does not hide that another holder took over", async () => {
    const model = await newModel();
    const newer = backend.adoptModel({ modelId: model.modelId, fence: { runId: "run", token: 2 } });
    await newer.zeroGrad();
    worker.fail({ path: /forward_backward/, kind: "reset" });
    await expect(model.forwardBackward([datum()], ppo, 1)).rejects.toBeInstanceOf(FencedError);
  });
});

test("closing the connection cancels the sample behind it", async () => {
  const { worker, backend, close } = await connected({ delayMs: 10_000 });
  const { samplingSessionId } = await (
    await backend.createModel({ baseModel: "quickstart", seed: 1, fence })
  ).saveWeightsForSampler(1);
  const stop = new AbortController();
  const sampling = backend.sampler({ samplingSessionId }).sample(sampleRequest(), stop.signal);
  while (worker.stats.waiting === 0) await sleep(5);
  stop.abort(new Error("stop"));
  await expect(sampling).rejects.toThrow("stop");
  while (worker.stats.waiting > 0) await sleep(5);
  expect(worker.stats).toMatchObject({ cancelled: 1, samples: 0 });
  await close();
});

test("the session is kept alive by heartbeats", async () => {
  const { worker, backend, close } = await connected({}, { heartbeatMs: 10 });
  await backend.createModel({ baseModel: "quickstart", seed: 1, fence });
  while (worker.stats.heartbeats < 3) await sleep(5);
  await close();
});

test("two calls where one is not enough: asample and its future", async () => {
  const { worker, backend, close } = await connected({ futureMs: 20 });
  const { samplingSessionId } = await (
    await backend.createModel({ baseModel: "quickstart", seed: 1, fence })
  ).saveWeightsForSampler(1);
  const twoCalls = connectTinker({ url: worker.url, apiKey: worker.apiKey, dialect: "hosted" });
  const sample = await twoCalls.sampler({ samplingSessionId, policyVersion: 5 }).sample(sampleRequest(), never());
  const oneCall = await backend.sampler({ samplingSessionId }).sample(sampleRequest(), never());
  expect(sample).toEqual(oneCall);
  expect(worker.stats.requests.get("/api/v1/asample")).toBe(1);
  expect(await twoCalls.info()).toMatchObject({ device: "remote", models: [{ name: "quickstart" }] });
  await twoCalls.close();
  await close();
});

describe("a sample that can't become a training row is refused", () => {
  const sequence = { stop_reason: "stop" as const, tokens: [1, 2], logprobs: [-1, -2] };
  const check = (changed: object, version: number | null = 3) =>
    checkedSample({ sequences: [{ ...sequence, ...changed }], weight_version: version }, { maxTokens: 2 }, undefined);
  test("fine as it is", () => {
    expect(check({})).toMatchObject({ tokens: [1, 2], logprobs: [-1, -2], policyVersion: 3, cacheHitTokens: 0 });
  });
  test.each([
    ["fewer logprobs than tokens", { logprobs: [-1] }],
    ["no logprobs", { logprobs: null }],
    ["no tokens", { tokens: [], logprobs: [] }],
    ["more tokens than asked for", { tokens: [1, 2, 3], logprobs: [-1, -1, -1] }],
  ])("%s", (_name, changed) => {
    expect(() => check(changed)).toThrow(/^sample: /);
  });
  test("weights that nobody names", () => {
    expect(() => check({}, null)).toThrow(/which weights/);
  });
  test("no sequence, or several", () => {
    expect(() => checkedSample({ sequences: [] }, { maxTokens: 2 }, 1)).toThrow();
    expect(() => checkedSample({ sequences: [sequence, sequence] }, { maxTokens: 2 }, 1)).toThrow();
  });
});
