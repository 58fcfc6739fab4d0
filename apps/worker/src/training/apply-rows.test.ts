import type { TrainableModel, TrainingDatum } from "@rolldeck/contracts/ports/backend";
import { RunConfig } from "@rolldeck/contracts/run-config";
import type { StoredTrainingRow } from "@rolldeck/db/training/training-rows";
import { describe, expect, test } from "vitest";
import { forwardBackwardRows, stepModel, storedDatum } from "./apply-rows.ts";
import { lossSpec } from "./loss-spec.ts";

const config = RunConfig.parse({ taskSets: [{ name: "key-chain" }], agent: { sampling: { temperature: 0.7 } } });

/** Prompt [1, 2], sampled [10, 11], observation [3], sampled [12]. */
const row = (change: Partial<StoredTrainingRow> = {}): StoredTrainingRow => ({
  row: 0,
  rolloutId: "r",
  attempt: 1,
  ranges: [{ start: 0, end: 6 }],
  mask: [
    { count: 2, reason: "template" },
    { count: 2, reason: null },
    { count: 1, reason: "observation" },
    { count: 1, reason: null },
  ],
  advantage: 2,
  scale: 0.25,
  sent: true,
  tokens: [1, 2, 10, 11, 3, 12],
  logprobs: [null, null, -0.1, -0.2, null, -0.3],
  versions: [null, null, 3, 3, null, 4],
  correction: null,
  trainerLogprobs: null,
  refLogprobs: null,
  ...change,
});

test("a stored row is the wire's datum: shifted by one, 0 where it is not trained", () => {
  expect(storedDatum(row())).toEqual({
    inputs: [1, 2, 10, 11, 3],
    targets: [2, 10, 11, 3, 12],
    weights: [0, 1, 1, 0, 1],
    logprobs: [0, -0.1, -0.2, 0, -0.3],
    advantages: [0, 0.5, 0.5, 0, 0.5],
    scale: 0.25,
  });
});

test("a sampled token that is masked needs no logprob; a trained one does", () => {
  const masked = row({ mask: [{ count: 6, reason: "no-logprob" }], logprobs: [null, null, null, -0.2, null, null] });
  expect(storedDatum(masked).weights).toEqual([0, 0, 0, 0, 0]);
  expect(() => storedDatum(row({ logprobs: [null, null, null, -0.2, null, -0.3] }))).toThrow(RangeError);
});

function model(): { model: TrainableModel; sent: TrainingDatum[][]; steps: { learningRate: number }[] } {
  const sent: TrainingDatum[][] = [];
  const steps: { learningRate: number }[] = [];
  const absent = () => Promise.reject(new Error("not asked for here"));
  return {
    sent,
    steps,
    model: {
      modelId: "m",
      state: absent,
      loadWeights: absent,
      forward: absent,
      saveWeights: absent,
      saveWeightsForSampler: absent,
      zeroGrad: absent,
      forwardBackward: async (data) => {
        sent.push([...data]);
        const logprobs = data.map((datum) => datum.logprobs.map((logprob) => logprob - 0.001));
        return { logprobs, metrics: { "loss:sum": 1.5, "trained_tokens:sum": 3, "logprob_gap:max": 0.001 } };
      },
      optimStep: async ({ learningRate }, { expectStep }) => {
        steps.push({ learningRate });
        return { step: expectStep + 1, metrics: {}, machine: {} };
      },
    },
  };
}

describe("an update", () => {
  test("sends what is marked, in requests of bounded size, and adds up what they say", async () => {
    const made = model();
    const long = row({
      row: 2,
      tokens: new Array<number>(300_000).fill(7),
      logprobs: new Array<number>(300_000).fill(-1),
      mask: [
        { count: 1, reason: "template" },
        { count: 299_999, reason: null },
      ],
    });
    let seq = 0;
    const rows = [row(), row({ row: 1, sent: false }), long, { ...long, row: 3 }];
    const applied = await forwardBackwardRows(made.model, rows, config, async () => ++seq);
    expect(made.sent.map((data) => data.length)).toEqual([2, 1]);
    expect(seq).toBe(2);
    expect([...applied.logprobs.keys()]).toEqual([0, 2, 3]);
    expect(applied.sums).toEqual({ loss: 3, trained_tokens: 6 });
    expect(applied.logprobGap).toBeCloseTo(0.001, 9);
  });

  test("without a row to train moves no weight and still counts", async () => {
    const made = model();
    const rows = [row({ sent: false })];
    const applied = await forwardBackwardRows(made.model, rows, config, async () => 1);
    expect(applied).toMatchObject({ logprobGap: null, sums: {} });
    expect(await stepModel(made.model, rows, config, { step: 5, seqId: 1, expectStep: 4 })).toMatchObject({ step: 5 });
    expect(made.steps).toEqual([{ learningRate: 0 }]);
  });
});

test("the trainer scores at the temperature that was sampled at, clips by ratios", () => {
  expect(lossSpec(config)).toEqual({
    name: "ppo",
    config: {
      temperature: 0.7,
      micro_batch_tokens: 16_384,
      clip_low_threshold: 0.8,
      clip_high_threshold: 1.28,
      dual_clip_c: 3,
    },
  });
  const plain = RunConfig.parse({
    taskSets: [{ name: "key-chain" }],
    algorithm: { loss: "importance_sampling" },
    agent: { sampling: { temperature: 0 } },
  });
  expect(lossSpec(plain)).toEqual({
    name: "importance_sampling",
    config: { temperature: 1, micro_batch_tokens: 16_384 },
  });
});
