/** One stored row in the shapes of three trainers: no target is learnt one place off, and each pads where its trainer looks. */
import { BatchRow } from "@rolldeck/contracts/batch-row";
import { describe, expect, it } from "vitest";
import { ExportError, promptLength } from "./export-row.ts";
import { checkSkyrl, exportSkyrl } from "./export-skyrl.ts";
import { exportTinker } from "./export-tinker.ts";
import { checkVerl, exportVerl } from "./export-verl.ts";

const stored = (change: Partial<BatchRow> = {}): BatchRow =>
  BatchRow.parse({
    ...{ runId: "run00001", step: 3, row: 0, groupId: "g", task: "key-chain", instanceId: "train-7", sample: 1 },
    ...{ rolloutId: "r", attempt: 1, ending: "answer", reward: 1, advantage: 0.5, scale: 1, sent: true },
    learnerVersion: 2,
    tokens: [1, 2, 3, 10, 11],
    mask: [
      { count: 3, reason: "template" },
      { count: 2, reason: null },
    ],
    samplerLogprobs: [null, null, null, -0.1, -0.2],
    ...{ trainerLogprobs: null, refLogprobs: null, tokenWeights: null },
    policyVersions: [null, null, null, 2, 2],
    ...change,
  });

describe("prompt [1, 2, 3] with response [10, 11]", () => {
  it("is shifted for Tinker", () => {
    expect(exportTinker(stored())).toEqual({
      inputs: [1, 2, 3, 10],
      targets: [2, 3, 10, 11],
      weights: [0, 0, 1, 1],
      logprobs: [0, 0, -0.1, -0.2],
      advantages: [0, 0, 0.5, 0.5],
      scale: 1,
    });
  });

  it("is lists of the response for SkyRL, without a shift", () => {
    const { output, stepWise, leftOut } = exportSkyrl([stored()]);
    expect({ stepWise, leftOut }).toEqual({ stepWise: false, leftOut: [] });
    expect(output).toEqual({
      prompt_token_ids: [[1, 2, 3]],
      response_ids: [[10, 11]],
      rewards: [1],
      loss_masks: [[1, 1]],
      stop_reasons: ["stop"],
      rollout_logprobs: [[-0.1, -0.2]],
      trajectory_ids: [{ instance_id: "g", repetition_id: 1 }],
      is_last_step: [true],
    });
    checkSkyrl(output);
  });

  it("is padded for VeRL, prompts at the left and responses at the right, with a mask over the response", () => {
    const data = exportVerl([stored()], { padTokenId: 99, promptLength: 5, responseLength: 4 });
    expect(data).toEqual({
      tensors: {
        prompts: [[99, 99, 1, 2, 3]],
        responses: [[10, 11, 99, 99]],
        response_mask: [[1, 1, 0, 0]],
        input_ids: [[99, 99, 1, 2, 3, 10, 11, 99, 99]],
        attention_mask: [[0, 0, 1, 1, 1, 1, 1, 0, 0]],
        position_ids: [[0, 0, 0, 1, 2, 3, 4, 4, 4]],
        rollout_log_probs: [[-0.1, -0.2, 0, 0]],
        token_level_scores: [[0, 1, 0, 0]],
        advantages: [[0.5, 0.5, 0, 0]],
      },
      non_tensors: { uid: ["g"], rollout_id: ["r"] },
      meta_info: { pad_token_id: 99, left_out: [], split_rollouts: [] },
    });
    checkVerl(data);
  });
});

describe("edges", () => {
  const oneToken = stored({
    tokens: [1, 2, 3, 10],
    mask: [
      { count: 3, reason: "template" },
      { count: 1, reason: null },
    ],
    samplerLogprobs: [null, null, null, -0.1],
    policyVersions: [null, null, null, 2],
  });
  const empty = stored({
    tokens: [1, 2, 3],
    mask: [{ count: 3, reason: "template" }],
    samplerLogprobs: [null, null, null],
    policyVersions: [null, null, null],
    sent: false,
  });

  it("a response of one token is learnt", () => {
    expect(exportTinker(oneToken)).toMatchObject({ targets: [2, 3, 10], weights: [0, 0, 1] });
    expect(exportSkyrl([oneToken]).output).toMatchObject({ response_ids: [[10]], loss_masks: [[1]] });
    const { tensors } = exportVerl([oneToken], { padTokenId: 0, responseLength: 2 });
    expect(tensors).toMatchObject({ responses: [[10, 0]], response_mask: [[1, 0]], token_level_scores: [[1, 0]] });
  });

  it("a row without a response trains nothing, and is left out where a reward needs a token", () => {
    expect(exportTinker(empty)).toMatchObject({ inputs: [1, 2], weights: [0, 0], advantages: [0, 0] });
    const leftOut = [{ row: 0, rolloutId: "r", why: "nothing sampled" }];
    expect(exportSkyrl([empty])).toMatchObject({ output: { response_ids: [] }, leftOut });
    expect(exportVerl([empty], { padTokenId: 0 })).toMatchObject({
      tensors: { prompts: [] },
      meta_info: { left_out: leftOut },
    });
    expect(() => checkSkyrl(exportSkyrl([empty]).output)).toThrow("row 0: response_ids have no row");
  });

  it("a prompt longer than the limit is refused by name, never cut", () => {
    const refused = () => exportVerl([stored({ row: 7 })], { padTokenId: 0, promptLength: 2 });
    expect(refused).toThrow(ExportError);
    expect(refused).toThrow("row 7: prompt has 3 tokens, over 2");
    expect(() => exportVerl([stored({ row: 7 })], { padTokenId: 0, responseLength: 1 })).toThrow("row 7: response");
  });

  it("a prompt over the run's limit is all masked, and stays in its group", () => {
    const mask = [
      { count: 3, reason: "template" as const },
      { count: 2, reason: "over-length" as const },
    ];
    const long = stored({ mask, sent: false });
    expect(exportSkyrl([long]).output).toMatchObject({
      rewards: [1],
      loss_masks: [[0, 0]],
      rollout_logprobs: [[-0.1, -0.2]],
    });
    expect(exportVerl([long], { padTokenId: 0 }).tensors).toMatchObject({
      response_mask: [[0, 0]],
      advantages: [[0, 0]],
    });
  });

  it("what was sampled for another row is prompt, what was sampled and is not trained is response", () => {
    const row = stored({
      tokens: [1, 5, 6, 2, 10, 11],
      mask: [
        { count: 1, reason: "template" },
        { count: 2, reason: "other-row" },
        { count: 1, reason: "observation" },
        { count: 1, reason: "parse-retry" },
        { count: 1, reason: null },
      ],
      samplerLogprobs: [null, -1, -1, null, null, -0.2],
      policyVersions: [null, 1, 1, null, 2, 2],
    });
    expect(promptLength(row)).toBe(4);
    expect(exportSkyrl([row]).output).toMatchObject({ response_ids: [[10, 11]], rollout_logprobs: [[0, -0.2]] });
  });

  it("the end-of-turn token and everything up to the next sample is kept, with mask 0", () => {
    const row = stored({
      tokens: [1, 2, 10, 99, 198, 100, 30, 31, 11, 99],
      mask: [
        { count: 2, reason: "template" },
        { count: 2, reason: null },
        { count: 4, reason: "observation" },
        { count: 2, reason: null },
      ],
      samplerLogprobs: [null, null, -0.1, -0.2, null, null, null, null, -0.3, -0.4],
      policyVersions: [null, null, 2, 2, null, null, null, null, 2, 2],
    });
    expect(exportSkyrl([row]).output).toMatchObject({
      response_ids: [[10, 99, 198, 100, 30, 31, 11, 99]],
      loss_masks: [[1, 1, 0, 0, 0, 0, 1, 1]],
      rollout_logprobs: [[-0.1, -0.2, 0, 0, 0, 0, -0.3, -0.4]],
    });
  });

  it("an infrastructure failure is left out and named, never a reward of 0", () => {
    const lost = stored({
      row: 1,
      rolloutId: "s",
      ending: "infrastructure",
      reward: null,
      mask: [{ count: 5, reason: "ending-failed" }],
    });
    const odd = stored({
      row: 2,
      rolloutId: "t",
      ending: "verifier_error",
      reward: 0,
      mask: [{ count: 5, reason: "ending-failed" }],
    });
    expect(exportSkyrl([stored(), lost, odd])).toMatchObject({
      output: { rewards: [1] },
      leftOut: [
        { row: 1, why: "no reward" },
        { row: 2, why: "outside the baseline" },
      ],
    });
  });

  it("corrections are Tinker's: weights in the advantages, the trainer's logprobs in the ratio", () => {
    const row = stored({ tokenWeights: [0, 0, 0, 2, 0.5], trainerLogprobs: [null, -1, -1, -0.3, -0.4] });
    expect(exportTinker(row)).toMatchObject({ logprobs: [0, 0, -0.3, -0.4], advantages: [0, 0, 1, 0.25] });
  });
});

describe("rows that lie apart", () => {
  it("are refused: a trainer would take them for two trajectories, or two groups", () => {
    const of = (row: number, rolloutId: string, groupId = "g") => stored({ row, rolloutId, groupId });
    expect(() => exportSkyrl([of(0, "a"), of(1, "b"), of(2, "a")])).toThrow("row 2: rolloutId");
    expect(() => exportVerl([of(0, "a", "x"), of(1, "b", "y"), of(2, "c", "x")], { padTokenId: 0 })).toThrow(
      "row 2: groupId",
    );
  });
});
