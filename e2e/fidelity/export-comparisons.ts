/** Our exports of a batch against what SkyRL and VeRL make of them; what is expected is made of the neutral rows, not of the export. */
import { type BatchRow, trainedMask } from "@rolldeck/contracts/batch-row";
import { promptLength } from "@rolldeck/rl/export-row";
import { exportSkyrl } from "@rolldeck/rl/export-skyrl";
import { exportVerl } from "@rolldeck/rl/export-verl";
import type { FidelityBatch } from "@rolldeck/rl/testing/fidelity-batches";
import { batchRows } from "./batch-rows.ts";
import type { Comparison } from "./comparison.ts";

export const skyrlExport = (batch: FidelityBatch): unknown => exportSkyrl(batchRows(batch));
/** Without rollouts of several rows: VeRL's estimators count rows. */
const verlRows = (batch: FidelityBatch): BatchRow[] => batchRows(batch, false);
export const verlExport = (batch: FidelityBatch): unknown => exportVerl(verlRows(batch), { padTokenId: 0 });

/** A list per row, brought to the longest one's length at one side. */
function padded(lists: readonly (readonly number[])[], side: "left" | "right"): number[][] {
  const width = Math.max(...lists.map(({ length }) => length));
  return lists.map((list) => {
    const zeros = new Array<number>(width - list.length).fill(0);
    return side === "left" ? [...zeros, ...list] : [...list, ...zeros];
  });
}

/** A number per token of each row's response. */
const responses = (rows: readonly BatchRow[], of: (row: BatchRow) => readonly number[]): number[][] =>
  rows.map((row) => of(row).slice(promptLength(row)));
const ones = (row: BatchRow): number[] => row.tokens.map(() => 1);
const knownLogprobs = (row: BatchRow): number[] => row.samplerLogprobs.map((logprob) => logprob ?? 0);
const rewardAtEnd = (row: BatchRow): number[] =>
  row.tokens.map((_, place) => (place === row.tokens.length - 1 ? (row.reward ?? Number.NaN) : 0));
const trainedAdvantages = (row: BatchRow, advantage = row.advantage): number[] =>
  trainedMask(row).map((trained) => trained * advantage);

/** SkyRL pads everything at the left. */
const skyrlTensors = (rows: readonly BatchRow[]): number[][][] => [
  padded(
    rows.map(({ tokens }) => tokens),
    "left",
  ),
  padded(rows.map(ones), "left"),
  ...[ones, rewardAtEnd, trainedMask, knownLogprobs].map((of) => padded(responses(rows, of), "left")),
];

export const skyrlExportComparisons: readonly Comparison[] = [
  {
    op: "export/batch-tensors",
    what: "exported rows as batch tensors",
    distribution: "skyrl",
    against:
      "skyrl validate_generator_output, postprocess_generator_output, convert_prompts_responses_to_batch_tensors",
    ours: (batch) => ({ values: skyrlTensors(batchRows(batch)) }),
  },
  {
    op: "export/advantages",
    what: "advantage rloo of exported rows, several a rollout",
    distribution: "skyrl",
    against: "skyrl RayPPOTrainer.compute_advantages_and_returns (step-wise)",
    given: "at trained tokens",
    ours: (batch) => ({
      values: padded(
        responses(batchRows(batch), (row) => trainedAdvantages(row)),
        "left",
      ),
    }),
  },
];

const join = (left: readonly number[][], right: readonly number[][]): number[][] =>
  left.map((row, place) => [...row, ...(right[place] ?? [])]);

function verlTensors(rows: readonly BatchRow[]): number[][][] {
  const prompts = (of: (row: BatchRow) => readonly number[]) =>
    padded(
      rows.map((row) => of(row).slice(0, promptLength(row))),
      "left",
    );
  const response = (of: (row: BatchRow) => readonly number[]) => padded(responses(rows, of), "right");
  const ids = ({ tokens }: BatchRow): readonly number[] => tokens;
  const places = (row: BatchRow): number[] => row.tokens.map((_, place) => place);
  const last = (row: BatchRow): number => row.tokens.length - 1;
  const afterEnd = response(places).map((row, n) => {
    const own = rows[n];
    const length = own === undefined ? 0 : own.tokens.length - promptLength(own);
    return row.map((place, t) => (t < length || own === undefined ? place : last(own)));
  });
  return [
    prompts(ids),
    response(ids),
    response(trainedMask),
    join(prompts(ids), response(ids)),
    join(prompts(ones), response(ones)),
    response(knownLogprobs),
    response(rewardAtEnd),
    response((row) => trainedAdvantages(row)),
    join(prompts(places), afterEnd),
    response(ones),
  ];
}

const alone = (row: BatchRow, rows: readonly BatchRow[]): boolean =>
  rows.filter(({ groupId }) => groupId === row.groupId).length === 1;

export const verlExportComparisons: readonly Comparison[] = [
  {
    op: "export/data-proto",
    what: "exported rows as DataProto",
    distribution: "verl",
    against: "verl DataProto.from_dict, check_consistency, split, concat; compute_position_id_with_mask",
    ours: (batch) => ({ values: verlTensors(verlRows(batch)) }),
  },
  {
    op: "export/advantages",
    what: "advantage rloo of exported rows",
    distribution: "verl",
    against: "verl core_algos.compute_rloo_outcome_advantage",
    ours: (batch) => ({
      values: padded(
        responses(verlRows(batch), (row) => trainedAdvantages(row)),
        "right",
      ),
    }),
    differs: {
      ours: "n = 1: A = 0 (nothing to compare with)",
      theirs: "n = 1: A = r",
      mapping: "groups of one get their formula; every other group is as it is",
      mapped: (batch) => {
        const rows = verlRows(batch);
        const theirs = (row: BatchRow) =>
          trainedAdvantages(row, alone(row, rows) ? (row.reward ?? Number.NaN) : row.advantage);
        return { values: padded(responses(rows, theirs), "right") };
      },
    },
  },
];
