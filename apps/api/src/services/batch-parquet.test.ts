import { BatchRow } from "@rolldeck/contracts/batch-row";
import { parquetReadObjects } from "hyparquet";
import { expect, it } from "vitest";
import { batchParquet } from "./batch-parquet.ts";

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
  advantage: 0.1,
  scale: 1 / 3,
  sent: true,
  learnerVersion: 2,
  tokens: [1, 2, 4_294_967_295, 10, 11],
  mask: [
    { count: 3, reason: "template" },
    { count: 2, reason: null },
  ],
  samplerLogprobs: [null, null, null, -0.5, -0.25],
  trainerLogprobs: [null, -1, -2, -0.5, null],
  refLogprobs: null,
  tokenWeights: [0, 0, 0, 1, 0.5],
  policyVersions: [null, null, null, 2, 2],
};
const unscored: BatchRow = {
  ...row,
  row: 1,
  ending: "infrastructure",
  reward: null,
  sent: false,
  tokens: [7],
  mask: [{ count: 1, reason: "ending-failed" }],
  samplerLogprobs: [null],
  trainerLogprobs: null,
  refLogprobs: [null],
  tokenWeights: null,
  policyVersions: [0],
};

const back = async (...pages: (readonly BatchRow[])[]): Promise<unknown[]> => {
  const bytes = await batchParquet(pages);
  const read = await parquetReadObjects({ file: new Uint8Array(bytes).buffer });
  return read.map(({ tokens, ...rest }) => ({ ...rest, tokens: Array.isArray(tokens) ? tokens.map(Number) : tokens }));
};

it("reads back as the rows that went in", async () => {
  const read = await back([row, unscored]);
  expect(read).toEqual([row, unscored]);
  expect(read.map((each) => BatchRow.parse(each))).toEqual([row, unscored]);
});

it("has its columns also without a row", async () => {
  expect(await back([])).toEqual([]);
  expect(await back()).toEqual([]);
});

it("keeps many rows of any length in order", async () => {
  const rows = Array.from({ length: 1500 }, (_, n): BatchRow => {
    const length = (n % 7) + 1;
    return {
      ...unscored,
      row: n,
      tokens: Array.from({ length }, (_, t) => n + t),
      mask: [{ count: length, reason: n % 2 ? "over-length" : "observation" }],
      samplerLogprobs: Array.from({ length }, (_, t) => (t % 2 ? -t / 8 : null)),
      refLogprobs: n % 3 ? null : new Array(length).fill(null),
      policyVersions: Array.from({ length }, (_, t) => (t % 2 ? n : null)),
    };
  });
  expect(await back(rows)).toEqual(rows);
  expect(await back(rows.slice(0, 7), rows.slice(7, 900), rows.slice(900))).toEqual(rows);
});
