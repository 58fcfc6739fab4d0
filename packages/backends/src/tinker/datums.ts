/** Training rows and settings as JSON text, per dialect. */
import { InputError } from "@rolldeck/contracts/errors";
import type { AdamSpec, LossSpec, TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { TinkerDialect } from "./dialects.ts";

/**
 * `{data, loss_fn, loss_fn_config}`. Number arrays become text once, by joining: no intermediate objects for long rows.
 * @throws InputError for rows whose arrays differ in length or hold NaN or infinity, and for a loss setting the server lacks
 */
export function lossInput(data: readonly TrainingDatum[], loss: LossSpec, dialect: TinkerDialect): string {
  const datums = loss.datums ?? data.length;
  const rows = data.map((datum, row) => datumJson(datum, loss, undoMeans(datum, datums, dialect), dialect, row));
  return `{"data":[${rows.join(",")}],"loss_fn":${JSON.stringify(loss.name)},"loss_fn_config":${lossConfig(loss, dialect)}}`;
}

/**
 * What a datum's numbers are multiplied by so that the server's reduction gives the plain sum: number of the update's datums × Σ
 * weights where it takes means of means.
 */
function undoMeans(datum: TrainingDatum, datums: number, dialect: TinkerDialect): number {
  if (dialect.reduction === "sum") return 1;
  return datums * datum.weights.reduce((sum, weight) => sum + weight, 0);
}

/** Terms beside the policy's: a token's weight then carries the denominator for all of them. */
const beside: readonly string[] = ["kl_coef", "entropy_coef"];

function datumJson(datum: TrainingDatum, loss: LossSpec, factor: number, dialect: TinkerDialect, row: number): string {
  check(datum, row);
  const tensors = [`"target_tokens":${tensor(datum.targets, "int64")}`];
  if (loss.name === "cross_entropy") {
    // Weights carry the factor: this loss has no advantages.
    tensors.push(`"weights":${tensor(scaled(datum.weights, factor), "float32")}`);
  } else {
    const scale = beside.some((name) => (loss.config[name] ?? 0) !== 0) ? (datum.scale ?? 1) : 1;
    tensors.push(`"logprobs":${tensor(datum.logprobs, "float32")}`);
    tensors.push(`"advantages":${tensor(scaled(datum.advantages, factor / (scale || 1)), "float32")}`);
    if (dialect.sendsWeightsWithAdvantages)
      tensors.push(`"weights":${tensor(scaled(datum.weights, scale), "float32")}`);
    if (datum.refLogprobs && loss.config.kl_coef)
      tensors.push(`"ref_logprobs":${tensor(datum.refLogprobs, "float32")}`);
  }
  return `{"model_input":${modelInput(datum.inputs)},"loss_fn_inputs":{${tensors.join(",")}}}`;
}

/** `{chunks: […]}` of token ids. */
export const modelInput = (tokens: readonly number[]): string =>
  `{"chunks":[{"type":"encoded_text","tokens":[${tokens.join(",")}]}]}`;

const tensor = (values: readonly number[], dtype: "int64" | "float32"): string =>
  `{"data":[${values.join(",")}],"dtype":"${dtype}","shape":[${values.length}]}`;

const scaled = (values: readonly number[], factor: number): readonly number[] =>
  factor === 1 ? values : values.map((value) => value * factor);

function check(datum: TrainingDatum, row: number): void {
  const length = datum.inputs.length;
  for (const name of ["inputs", "targets", "logprobs", "advantages", "weights", "refLogprobs"] as const) {
    const values = datum[name] ?? [];
    if (name === "refLogprobs" && datum.refLogprobs === undefined) continue;
    if (values.length !== length) {
      throw badDatum(`data[${row}].${name}`, `has ${values.length} entries, inputs have ${length}`);
    }
    if (!values.every(Number.isFinite)) throw badDatum(`data[${row}].${name}`, "holds a value that is not finite");
  }
}

const badDatum = (path: string, message: string): InputError => new InputError([{ path, message }]);

/** Hints that change nothing but speed; a server without them is asked without. */
const hints: ReadonlySet<string> = new Set(["micro_batch_tokens"]);

function lossConfig(loss: LossSpec, dialect: TinkerDialect): string {
  const known = dialect.lossSettings;
  if (known === null) return JSON.stringify(loss.config);
  const wanted = Object.entries(loss.config).filter(([name]) => !hints.has(name));
  // Logprobs at temperature 1 are what these servers compute anyway.
  const sent = wanted.filter(([name, value]) => !(name === "temperature" && value === 1));
  const unknown = sent.find(([name]) => !known.includes(name));
  if (unknown) {
    throw new InputError([{ path: `loss.${unknown[0]}`, message: `this server's ${loss.name} has no such setting` }]);
  }
  return JSON.stringify(Object.fromEntries(sent));
}

export const adamParams = (adam: AdamSpec): Readonly<Record<string, number>> => ({
  learning_rate: adam.learningRate,
  beta1: adam.beta1,
  beta2: adam.beta2,
  eps: adam.eps,
  weight_decay: adam.weightDecay,
  grad_clip_norm: adam.gradClipNorm,
});
