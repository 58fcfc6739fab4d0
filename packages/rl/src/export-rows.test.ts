/** Properties of the exports over rows of any shape: nothing is lost, nothing is moved, and the validators agree. */
import { BatchRow, trainedMask } from "@rolldeck/contracts/batch-row";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryGroups } from "../testing/arbitrary-groups.ts";
import { buildBatchRows } from "../testing/build-batch-rows.ts";
import { ExportError, promptLength } from "./export-row.ts";
import { checkSkyrl, exportSkyrl, type SkyrlGeneratorOutput } from "./export-skyrl.ts";
import { checkVerl, exportVerl, type VerlData, type VerlTensors } from "./export-verl.ts";

const pad = 0;
const kept = (rows: readonly BatchRow[], leftOut: readonly { row: number }[]): BatchRow[] =>
  rows.filter(({ row }) => !leftOut.some((left) => left.row === row));
const unmasked = (row: BatchRow): (number | null)[] =>
  trainedMask(row).map((trained, place) => (trained === 1 ? (row.samplerLogprobs[place] ?? null) : null));

describe("any batch", () => {
  it("is valid in the neutral form", () => {
    fc.assert(
      fc.property(arbitraryGroups, (groups) => {
        for (const row of buildBatchRows(groups)) expect(BatchRow.safeParse(row).error?.issues ?? []).toEqual([]);
      }),
    );
  });

  it("comes back from SkyRL's shape: tokens, masks, logprobs, rewards, groups", () => {
    fc.assert(
      fc.property(arbitraryGroups, (groups) => {
        const rows = buildBatchRows(groups);
        const { output, leftOut, stepWise } = exportSkyrl(rows);
        const left = kept(rows, leftOut);
        expect(output.response_ids).toHaveLength(left.length);
        if (left.length > 0) checkSkyrl(output);
        for (const [place, row] of left.entries()) {
          const start = promptLength(row);
          const response = output.response_ids[place] ?? [];
          expect([...(output.prompt_token_ids[place] ?? []), ...response]).toEqual(row.tokens);
          expect(output.loss_masks[place]).toEqual(trainedMask(row).slice(start));
          expect(trainedMask(row).slice(0, start)).not.toContain(1);
          const logprobs = (output.rollout_logprobs[place] ?? []).map((logprob, t) =>
            output.loss_masks[place]?.[t] === 1 ? logprob : null,
          );
          expect(logprobs).toEqual(unmasked(row).slice(start));
          expect(output.rewards[place]).toBe(row.reward);
          expect(output.trajectory_ids[place]).toEqual({ instance_id: row.groupId, repetition_id: row.sample });
        }
        expect(output.is_last_step.filter(Boolean)).toHaveLength(new Set(left.map(({ rolloutId }) => rolloutId)).size);
        expect(stepWise).toBe(new Set(left.map(({ rolloutId }) => rolloutId)).size < left.length);
        expect(leftOut.filter(({ why }) => why === "no reward").length).toBe(
          rows.filter(({ reward }) => reward === null).length,
        );
      }),
    );
  });

  it("comes back from VeRL's: padding stands where attention is 0, and on its side", () => {
    fc.assert(
      fc.property(arbitraryGroups, fc.nat(3), (groups, spare) => {
        const rows = buildBatchRows(groups);
        const plain = exportVerl(rows, { padTokenId: pad });
        const width = {
          prompt: plain.tensors.prompts[0]?.length ?? 1,
          response: plain.tensors.responses[0]?.length ?? 1,
        };
        const data = exportVerl(rows, {
          padTokenId: pad,
          promptLength: width.prompt + spare,
          responseLength: width.response + spare,
        });
        const left = kept(rows, data.meta_info.left_out);
        if (left.length > 0) checkVerl(data);
        for (const [place, row] of left.entries()) {
          const of = (name: keyof VerlTensors) => data.tensors[name][place] ?? [];
          const start = promptLength(row);
          const attention = of("attention_mask");
          expect(of("input_ids").filter((_, t) => attention[t] === 1)).toEqual(row.tokens);
          expect(of("prompts").slice(-start)).toEqual(row.tokens.slice(0, start));
          expect(of("responses").slice(0, row.tokens.length - start)).toEqual(row.tokens.slice(start));
          expect(of("response_mask").slice(0, row.tokens.length - start)).toEqual(trainedMask(row).slice(start));
          const trained = of("response_mask");
          expect(of("rollout_log_probs").filter((_, t) => trained[t] === 1)).toEqual(
            unmasked(row).filter((logprob) => logprob !== null),
          );
          expect(of("position_ids").filter((_, t) => attention[t] === 1)).toEqual(row.tokens.map((_, t) => t));
          expect(of("token_level_scores").reduce((sum, score) => sum + score, 0)).toBe(row.reward);
          expect(of("advantages")).toEqual(trained.map((one) => (one === 1 ? row.advantage : 0)));
        }
      }),
    );
  });
});

const groups = [
  [
    // Its history was rewritten: two rows.
    {
      turns: [
        { prompt: [1, 2], sampled: [3, 4] },
        { prompt: [9, 8], sampled: [5] },
      ],
      reward: 1,
    },
    { turns: [{ prompt: [1, 2], sampled: [6] }], reward: 0 },
  ],
  [
    { turns: [{ prompt: [1, 2, 3], sampled: [7] }], reward: 0.5 },
    { turns: [{ prompt: [1, 2, 3], sampled: [7, 7] }], reward: 0.25, ending: "context_full" as const },
  ],
];

describe("several rows of one rollout", () => {
  it("are steps of one trajectory in SkyRL, of which the last is marked", () => {
    const { output, stepWise } = exportSkyrl(buildBatchRows(groups));
    expect(stepWise).toBe(true);
    expect(output.is_last_step).toEqual([false, true, true, true, true]);
    expect(output.rewards).toEqual([1, 1, 0, 0.5, 0.25]);
    expect(output.stop_reasons).toEqual(["stop", "stop", "stop", "stop", "length"]);
    checkSkyrl(output);
  });

  it("are named in VeRL's, whose estimators would count them twice", () => {
    const { meta_info, non_tensors } = exportVerl(buildBatchRows(groups), { padTokenId: pad });
    expect(meta_info.split_rollouts).toEqual(["0-0"]);
    expect(non_tensors.uid).toEqual(["group-0", "group-0", "group-0", "group-1", "group-1"]);
  });
});

describe("the validators name the row and the field", () => {
  const skyrl = exportSkyrl(buildBatchRows(groups)).output;
  const faults: [string, number, Partial<SkyrlGeneratorOutput>][] = [
    ["loss_masks", 1, { loss_masks: skyrl.loss_masks.with(1, [1, 1]) }],
    ["loss_masks", 3, { loss_masks: skyrl.loss_masks.with(3, [2]) }],
    ["rollout_logprobs", 0, { rollout_logprobs: skyrl.rollout_logprobs.with(0, [-1]) }],
    ["rollout_logprobs", 2, { rollout_logprobs: skyrl.rollout_logprobs.with(2, [Number.NaN]) }],
    ["rewards", 4, { rewards: skyrl.rewards.slice(0, 4) }],
    ["rewards", 2, { rewards: skyrl.rewards.with(2, Number.NaN) }],
    ["response_ids", 3, { response_ids: skyrl.response_ids.with(3, []) }],
    ["prompt_token_ids", 3, { prompt_token_ids: skyrl.prompt_token_ids.with(3, []) }],
    ["is_last_step", 0, { is_last_step: skyrl.is_last_step.with(0, true) }],
    ["is_last_step", 4, { is_last_step: skyrl.is_last_step.with(4, false) }],
    [
      "trajectory_ids",
      4,
      { trajectory_ids: skyrl.trajectory_ids.with(4, { instance_id: "group-0", repetition_id: 5 }) },
    ],
  ];
  it.each(faults)("SkyRL: %s of row %i", (field, row, change) => {
    expect(() => checkSkyrl({ ...skyrl, ...change })).toThrow(expect.objectContaining({ field, row }));
    expect(() => checkSkyrl({ ...skyrl, ...change })).toThrow(ExportError);
  });

  const verl = exportVerl(buildBatchRows(groups), { padTokenId: pad, promptLength: 4, responseLength: 3 });
  const set = (name: keyof VerlTensors, row: number, place: number, value: number): VerlData => ({
    ...verl,
    tensors: {
      ...verl.tensors,
      [name]: verl.tensors[name].with(row, (verl.tensors[name][row] ?? []).with(place, value)),
    },
  });
  const broken: [keyof VerlTensors, number, VerlData][] = [
    ["attention_mask", 0, set("attention_mask", 0, 3, 0)],
    ["attention_mask", 0, set("attention_mask", 0, 4, 0)],
    ["input_ids", 1, set("input_ids", 1, 4, 50)],
    ["position_ids", 2, set("position_ids", 2, 4, 0)],
    ["response_mask", 3, set("response_mask", 3, 2, 1)],
    ["rollout_log_probs", 3, set("rollout_log_probs", 3, 2, -1)],
    ["rollout_log_probs", 0, set("rollout_log_probs", 0, 0, Number.NaN)],
    ["token_level_scores", 0, set("token_level_scores", 0, 0, 1)],
    ["advantages", 3, set("advantages", 3, 2, 1)],
    ["responses", 2, { ...verl, tensors: { ...verl.tensors, responses: verl.tensors.responses.with(2, [6]) } }],
    ["prompts", 0, { ...verl, tensors: { ...verl.tensors, prompts: [] } }],
  ];
  it.each(broken)("VeRL: %s of row %i", (field, row, data) => {
    expect(() => checkVerl(data)).toThrow(expect.objectContaining({ field, row }));
  });
});
