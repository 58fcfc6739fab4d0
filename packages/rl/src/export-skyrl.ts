/**
 * Training rows → SkyRL-train's `GeneratorOutput`: lists per response, no padding, no shift. SkyRL makes its own advantages from
 * the rewards; where a rollout has several rows it needs its step-wise mode, which counts the last row of each
 * (`is_last_step`), so that a rollout whose history was rewritten counts once in its group.
 */
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import type { Ending } from "@rolldeck/contracts/endings";
import { ExportError, type LeftOutRow, splitRows, withoutNull } from "./export-row.ts";

/** Names are SkyRL's; one entry per row. */
export interface SkyrlGeneratorOutput {
  readonly prompt_token_ids: readonly (readonly number[])[];
  readonly response_ids: readonly (readonly number[])[];
  readonly rewards: readonly number[];
  readonly loss_masks: readonly (readonly number[])[];
  readonly stop_reasons: readonly ("stop" | "length")[];
  readonly rollout_logprobs: readonly (readonly number[])[];
  /** The group as `instance_id`: SkyRL groups by it, and two task sets may have instances of one name. */
  readonly trajectory_ids: readonly { readonly instance_id: string; readonly repetition_id: number }[];
  readonly is_last_step: readonly boolean[];
}
export interface SkyrlExport {
  readonly output: SkyrlGeneratorOutput;
  /** A rollout has several rows: SkyRL must run with `step_wise_trajectories`. */
  readonly stepWise: boolean;
  readonly leftOut: readonly LeftOutRow[];
}

/** Endings whose last turn was cut, by its token limit or by the context's. */
const cutEndings: readonly Ending[] = ["length", "context_full"];

/** @throws ExportError for a row that SkyRL can't hold */
export function exportSkyrl(rows: readonly BatchRow[]): SkyrlExport {
  const split = splitRows(rows);
  const output: SkyrlGeneratorOutput = {
    prompt_token_ids: split.rows.map(({ prompt }) => prompt),
    response_ids: split.rows.map(({ response }) => response),
    rewards: split.rows.map(({ reward }) => reward),
    loss_masks: split.rows.map(({ mask }) => mask),
    stop_reasons: split.rows.map(({ source, last }) =>
      last && cutEndings.includes(source.ending) ? "length" : "stop",
    ),
    rollout_logprobs: split.rows.map(({ source, logprobs, mask }) =>
      withoutNull(source.row, "samplerLogprobs", logprobs, mask),
    ),
    trajectory_ids: split.rows.map(({ source }) => ({ instance_id: source.groupId, repetition_id: source.sample })),
    is_last_step: split.rows.map(({ last }) => last),
  };
  return { output, stepWise: output.is_last_step.includes(false), leftOut: split.leftOut };
}

/** What SkyRL's own validator holds, and what its trainer relies on. @throws ExportError that names the row and the field */
export function checkSkyrl(output: SkyrlGeneratorOutput): void {
  const rows = output.response_ids.length;
  if (rows === 0) throw new ExportError(0, "response_ids", "have no row");
  for (const [field, list] of Object.entries(output))
    if (list.length !== rows) throw new ExportError(Math.min(list.length, rows), field, `end, of ${rows} rows`);
  for (let row = 0; row < rows; row++) checkRow(output, row);
  checkTrajectories(output);
}

function checkRow(output: SkyrlGeneratorOutput, row: number): void {
  const length = output.response_ids[row]?.length ?? 0;
  if (output.prompt_token_ids[row]?.length === 0) throw new ExportError(row, "prompt_token_ids", "are empty");
  if (length === 0) throw new ExportError(row, "response_ids", "are empty");
  for (const field of ["prompt_token_ids", "response_ids"] as const)
    if (!output[field][row]?.every((id) => Number.isInteger(id) && id >= 0))
      throw new ExportError(row, field, "hold what is no token id");
  for (const field of ["loss_masks", "rollout_logprobs"] as const) {
    const own = output[field][row]?.length ?? 0;
    if (own !== length) throw new ExportError(row, field, `have ${own} entries for a response of ${length}`);
  }
  if (!output.loss_masks[row]?.every((kept) => kept === 0 || kept === 1))
    throw new ExportError(row, "loss_masks", "hold a number that is neither 0 nor 1");
  if (!output.rollout_logprobs[row]?.every(Number.isFinite))
    throw new ExportError(row, "rollout_logprobs", "hold a number that is not finite");
  if (!Number.isFinite(output.rewards[row])) throw new ExportError(row, "rewards", "is not finite");
}

/** Rows of a trajectory lie beside each other, and only the last one is marked; so do trajectories of a group. */
function checkTrajectories({ trajectory_ids: ids, is_last_step: last }: SkyrlGeneratorOutput): void {
  const ended = new Set<string>();
  const endedGroups = new Set<string>();
  ids.forEach((id, row) => {
    const key = trajectoryKey(id);
    const next = ids[row + 1];
    const isLast = next === undefined || trajectoryKey(next) !== key;
    if (ended.has(key)) throw new ExportError(row, "trajectory_ids", "return to a trajectory that had ended");
    if (last[row] !== isLast) throw new ExportError(row, "is_last_step", `is ${last[row]}, not ${isLast}`);
    if (endedGroups.has(id.instance_id))
      throw new ExportError(row, "trajectory_ids", "return to a group that had ended");
    if (isLast) ended.add(key);
    if (next?.instance_id !== id.instance_id) endedGroups.add(id.instance_id);
  });
}

const trajectoryKey = (id: { readonly instance_id: string; readonly repetition_id: number }): string =>
  `${id.instance_id}_${id.repetition_id}`;
