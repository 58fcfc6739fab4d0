import path from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { BatchRow, batchRowJsonSchema, trainedMask } from "./batch-row.ts";

const row: BatchRow = {
  runId: "run00001",
  step: 3,
  row: 0,
  groupId: "group001",
  task: "key-chain",
  instanceId: "train-7",
  sample: 1,
  rolloutId: "rollout1",
  attempt: 1,
  ending: "answer",
  reward: 1,
  advantage: 0.5,
  scale: 0.25,
  sent: true,
  learnerVersion: 2,
  tokens: [1, 2, 3, 10, 11],
  mask: [
    { count: 3, reason: "template" },
    { count: 2, reason: null },
  ],
  samplerLogprobs: [null, null, null, -0.1, -0.2],
  trainerLogprobs: null,
  refLogprobs: null,
  tokenWeights: null,
  policyVersions: [null, null, null, 2, 2],
};
const pathsOf = (changed: Record<string, unknown>): string[] =>
  (BatchRow.safeParse({ ...row, ...changed }).error?.issues ?? []).map((issue) => issue.path.join("."));

describe("a batch row", () => {
  it("is taken as it is", () => {
    expect(BatchRow.parse(row)).toEqual(row);
    expect(trainedMask(row)).toEqual([0, 0, 0, 1, 1]);
  });

  it("may be masked as a whole, and unscored", () => {
    const mask = [
      { count: 3, reason: "template" },
      { count: 2, reason: "no-reward" },
    ];
    const samplerLogprobs = [null, null, null, null, null];
    expect(pathsOf({ mask, samplerLogprobs, reward: null, sent: false })).toEqual([]);
  });

  it.each(["samplerLogprobs", "trainerLogprobs", "refLogprobs", "tokenWeights", "policyVersions"])(
    "has one of %s per token",
    (name) => {
      expect(pathsOf({ [name]: [1, 2, 3, 4] })).toEqual([name]);
      expect(pathsOf({ [name]: [1, 2, 3, 4, 5, 6] })).toEqual([name]);
    },
  );

  it("is covered by its mask", () => {
    expect(pathsOf({ mask: [{ count: 4, reason: null }] })).toEqual(["mask"]);
    expect(pathsOf({ mask: [] })).toEqual(["mask"]);
  });

  it("never trains its first token", () => {
    const all = { mask: [{ count: 5, reason: null }], samplerLogprobs: [-1, -1, -1, -1, -1] };
    expect(pathsOf({ ...all, policyVersions: [2, 2, 2, 2, 2] })).toEqual(["mask.0"]);
  });

  it("trains no token without a finite logprob, or that nobody sampled", () => {
    expect(pathsOf({ samplerLogprobs: [null, null, null, -0.1, null] })).toEqual(["samplerLogprobs.4"]);
    for (const bad of [Number.NaN, Number.NEGATIVE_INFINITY])
      expect(pathsOf({ samplerLogprobs: [null, null, null, -0.1, bad] })).toEqual(["samplerLogprobs.4"]);
    expect(pathsOf({ policyVersions: [null, null, null, null, 2] })).toEqual(["policyVersions.3"]);
  });

  it("takes no number that is not finite, and no field that it does not know", () => {
    expect(pathsOf({ advantage: Number.POSITIVE_INFINITY })).toEqual(["advantage"]);
    expect(BatchRow.safeParse({ ...row, rewards: 1 }).success).toBe(false);
  });
});

describe("its JSON Schema", () => {
  it("describes every field", () => {
    const { properties, required } = z
      .object({
        properties: z.record(z.string(), z.object({ description: z.string() })),
        required: z.array(z.string()),
      })
      .parse(batchRowJsonSchema());
    expect(Object.keys(properties)).toEqual(Object.keys(row));
    expect(required).toEqual(Object.keys(row));
  });

  // After a change of the fields: `npx vitest run batch-row -u` writes it.
  it("is the one in docs", async () => {
    const file = path.resolve(import.meta.dirname, "../../../docs/batch-row.schema.json");
    await expect(`${JSON.stringify(batchRowJsonSchema(), null, 2)}\n`).toMatchFileSnapshot(file);
  });
});
