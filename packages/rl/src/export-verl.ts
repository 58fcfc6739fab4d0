/**
 * Training rows → the contents of VeRL's `DataProto`: prompts padded at the left, responses at the right, one row of each tensor
 * per training row. `response_mask` is the loss mask. VeRL's estimators count rows: where a rollout has several
 * (`meta_info.split_rollouts`), use our `advantages` instead of its estimators, or that rollout counts more often in its group.
 */
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { ExportError, type LeftOutRow, type SplitRow, splitRows, withoutNull } from "./export-row.ts";

type Matrix = readonly (readonly number[])[];

/** Names are VeRL's; each tensor has rows × prompt, response or both together. */
export interface VerlTensors {
  /** int64: padded at the left. */
  readonly prompts: Matrix;
  /** int64: padded at the right. */
  readonly responses: Matrix;
  /** int64: 1 where trained. */
  readonly response_mask: Matrix;
  /** int64: prompts, then responses. */
  readonly input_ids: Matrix;
  /** int64: 0 on padding. */
  readonly attention_mask: Matrix;
  /** int64: counted over what is no padding. */
  readonly position_ids: Matrix;
  /** float32: of the sampler; 0.0 only where the response mask is 0. */
  readonly rollout_log_probs: Matrix;
  /** float32: the reward at the response's last token. */
  readonly token_level_scores: Matrix;
  /** float32: ours, where trained; not scaled. */
  readonly advantages: Matrix;
}
export interface VerlData {
  readonly tensors: VerlTensors;
  readonly non_tensors: {
    /** The group: VeRL compares rows that have one uid. */
    readonly uid: readonly string[];
    readonly rollout_id: readonly string[];
  };
  readonly meta_info: {
    readonly pad_token_id: number;
    readonly left_out: readonly LeftOutRow[];
    readonly split_rollouts: readonly string[];
  };
}
export interface VerlOptions {
  readonly padTokenId: number;
  /** `data.max_prompt_length` and `data.max_response_length`; absent: the longest row's. */
  readonly promptLength?: number;
  readonly responseLength?: number;
}

/** @throws ExportError for a row that is longer than the lengths asked for: nothing is cut */
export function exportVerl(rows: readonly BatchRow[], options: VerlOptions): VerlData {
  const { rows: split, leftOut } = splitRows(rows);
  const longest = (lists: readonly (readonly number[])[]): number =>
    lists.reduce((most, { length }) => Math.max(most, length), 0);
  const prompt = options.promptLength ?? longest(split.map((row) => row.prompt));
  const response = options.responseLength ?? longest(split.map((row) => row.response));
  const padded = split.map((row) => padRow(row, prompt, response, options.padTokenId));
  const column = (name: keyof VerlTensors): Matrix => padded.map((row) => row[name]);
  return {
    tensors: {
      prompts: column("prompts"),
      responses: column("responses"),
      response_mask: column("response_mask"),
      input_ids: column("input_ids"),
      attention_mask: column("attention_mask"),
      position_ids: column("position_ids"),
      rollout_log_probs: column("rollout_log_probs"),
      token_level_scores: column("token_level_scores"),
      advantages: column("advantages"),
    },
    non_tensors: {
      uid: split.map(({ source }) => source.groupId),
      rollout_id: split.map(({ source }) => source.rolloutId),
    },
    meta_info: {
      pad_token_id: options.padTokenId,
      left_out: leftOut,
      split_rollouts: [...new Set(split.filter(({ last }) => !last).map(({ source }) => source.rolloutId))],
    },
  };
}

const filled = (count: number, value: number): number[] => new Array<number>(count).fill(value);

function padRow(row: SplitRow, prompt: number, response: number, pad: number): Record<keyof VerlTensors, number[]> {
  const left = room(row, "prompt", row.prompt.length, prompt);
  const right = room(row, "response", row.response.length, response);
  const prompts = [...filled(left, pad), ...row.prompt];
  const responses = [...row.response, ...filled(right, pad)];
  const attention = [...filled(left, 0), ...filled(row.prompt.length + row.response.length, 1), ...filled(right, 0)];
  const end = row.response.length - 1;
  const logprobs = withoutNull(row.source.row, "samplerLogprobs", row.logprobs, row.mask);
  return {
    prompts,
    responses,
    response_mask: [...row.mask, ...filled(right, 0)],
    input_ids: [...prompts, ...responses],
    attention_mask: attention,
    position_ids: positions(attention),
    rollout_log_probs: [...logprobs, ...filled(right, 0)],
    token_level_scores: filled(response, 0).map((zero, place) => (place === end ? row.reward : zero)),
    advantages: [...row.mask.map((kept) => (kept === 1 ? row.source.advantage : 0)), ...filled(right, 0)],
  };
}

function room({ source }: SplitRow, part: "prompt" | "response", length: number, limit: number): number {
  if (length > limit) throw new ExportError(source.row, part, `has ${length} tokens, over ${limit}`);
  return limit - length;
}

/** Tokens before it that are no padding. */
function positions(attention: readonly number[]): number[] {
  let seen = 0;
  return attention.map((real) => {
    seen += real;
    return Math.max(seen - 1, 0);
  });
}

/** @throws ExportError that names the row and the field */
export function checkVerl({ tensors, non_tensors: { uid, rollout_id } }: VerlData): void {
  const rows = tensors.prompts.length;
  if (rows === 0) throw new ExportError(0, "prompts", "have no row");
  const prompt = tensors.prompts[0]?.length ?? 0;
  const response = tensors.responses[0]?.length ?? 0;
  const whole: readonly string[] = ["input_ids", "attention_mask", "position_ids"];
  for (const [field, matrix] of Object.entries({ ...tensors })) {
    if (matrix.length !== rows) throw new ExportError(Math.min(matrix.length, rows), field, `end, of ${rows} rows`);
    const width = field === "prompts" ? prompt : whole.includes(field) ? prompt + response : response;
    const odd = matrix.findIndex((row) => row.length !== width || !row.every(Number.isFinite));
    if (odd !== -1) throw new ExportError(odd, field, `have not ${width} finite numbers`);
  }
  for (const [field, list] of Object.entries({ uid, rollout_id })) {
    if (list.length !== rows) throw new ExportError(Math.min(list.length, rows), field, `end, of ${rows} rows`);
    if (list.includes("")) throw new ExportError(list.indexOf(""), field, "is empty");
  }
  for (let row = 0; row < rows; row++) checkRow(tensors, row, prompt);
}

function checkRow(tensors: VerlTensors, row: number, prompt: number): void {
  const of = (name: keyof VerlTensors): readonly number[] => tensors[name][row] ?? [];
  const refuse = (field: keyof VerlTensors, what: string): never => {
    throw new ExportError(row, field, what);
  };
  const attention = of("attention_mask");
  const real = attention.slice(prompt);
  const mask = of("response_mask");
  if (!attention.every(isBit)) refuse("attention_mask", "holds a number that is neither 0 nor 1");
  if (!ascends(attention.slice(0, prompt))) refuse("attention_mask", "has padding inside or after the prompt");
  if (attention[prompt - 1] !== 1) refuse("attention_mask", "has no prompt");
  if (!ascends([...real].reverse())) refuse("attention_mask", "has padding inside or before the response");
  if (!same(of("input_ids"), [...of("prompts"), ...of("responses")]))
    refuse("input_ids", "are not prompt and response");
  if (!same(of("position_ids"), positions(attention))) refuse("position_ids", "do not count what is no padding");
  if (!mask.every((kept, place) => isBit(kept) && kept <= (real[place] ?? 0)))
    refuse("response_mask", "trains padding, or is neither 0 nor 1");
  const end = real.lastIndexOf(1);
  if (!of("token_level_scores").every((score, place) => score === 0 || place === end))
    refuse("token_level_scores", "have a score before or after the response's last token");
  if (!of("rollout_log_probs").every((logprob, place) => logprob === 0 || real[place] === 1))
    refuse("rollout_log_probs", "have one for padding");
  if (!of("advantages").every((advantage, place) => advantage === 0 || mask[place] === 1))
    refuse("advantages", "have one where nothing is trained");
}

const isBit = (value: number): boolean => value === 0 || value === 1;
const ascends = (values: readonly number[]): boolean =>
  values.every((value, place) => value >= (values[place - 1] ?? 0));
const same = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((value, place) => value === b[place]);
