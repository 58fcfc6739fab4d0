/**
 * Tinker REST v1 in JSON as our GPU worker, SkyRL's Tinker server and the hosted service speak it, plus our `/ext/v1`
 * extensions. Replies are parsed leniently (unknown keys dropped), requests are built strictly.
 */
import { z } from "zod";

export const Chunk = z.object({ type: z.literal("encoded_text"), tokens: z.array(z.int().min(0)) });
export const ModelInput = z.object({ chunks: z.array(Chunk) });
export const Tensor = z.object({
  data: z.array(z.number()),
  dtype: z.enum(["int64", "float32"]),
  shape: z.array(z.int()).optional(),
});
export const Datum = z.object({ model_input: ModelInput, loss_fn_inputs: z.record(z.string(), Tensor) });
export type Datum = z.infer<typeof Datum>;

export const SamplingParams = z.object({
  max_tokens: z.int().min(1),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  top_k: z.int().optional(),
  seed: z.int().optional(),
  stop: z.union([z.array(z.int()), z.array(z.string())]).optional(),
});
export const SampleBody = z.object({
  prompt: ModelInput,
  num_samples: z.int().min(1),
  sampling_params: SamplingParams,
  sampling_session_id: z.string().optional(),
  seq_id: z.int().optional(),
  model_path: z.string().optional(),
  base_model: z.string().optional(),
  prompt_logprobs: z.boolean().optional(),
});
export type SampleBody = z.infer<typeof SampleBody>;
export const SampleReply = z.object({
  sequences: z.array(
    z.object({
      stop_reason: z.enum(["stop", "length"]),
      tokens: z.array(z.int()),
      logprobs: z.array(z.number()).nullish(),
    }),
  ),
  weight_version: z.int().nullish(),
  prompt_cache_hit_tokens: z.int().nullish(),
});
export type SampleReply = z.infer<typeof SampleReply>;

export const ForwardBackwardReply = z.object({
  loss_fn_output_type: z.string().optional(),
  loss_fn_outputs: z.array(z.record(z.string(), z.object({ data: z.array(z.number()) }).loose())),
  metrics: z.record(z.string(), z.number()).default({}),
});
export const OptimStepReply = z.object({
  metrics: z.record(z.string(), z.number()).nullish(),
  /** Of our worker: what its machine did since the step before; see engine-metrics.ts. */
  machine: z.record(z.string(), z.number()).nullish(),
  step: z.int().optional(),
});

export const FutureReply = z.object({ request_id: z.string() }).loose();
export const TryAgain = z.object({ type: z.literal("try_again"), queue_state: z.string().optional() });
export const FutureFailure = z.object({
  error: z.string(),
  category: z.enum(["unknown", "server", "user"]).catch("unknown"),
});

/** GET /ext/v1/info */
export const WorkerInfo = z.object({
  boot_id: z.string(),
  device: z.string(),
  /** What forward passes compute in; older workers: float32. */
  dtype: z.string().default("float32"),
  /** What samples; `vllm`: experimental, never run. */
  engine: z.enum(["torch", "vllm"]).default("torch"),
  /** What the optimizer's moments are kept in. */
  optimizer: z.object({ name: z.string(), moments: z.string() }).default({ name: "adamw", moments: "float32" }),
  versions: z.record(z.string(), z.string()),
  memory_bytes: z.number().nullable(),
  base_models: z.array(z.object({ name: z.string(), parameters: z.int(), max_context: z.int(), vocab_size: z.int() })),
  losses: z.array(z.string()),
  reduction: z.literal("sum"),
});
export type WorkerInfo = z.infer<typeof WorkerInfo>;
/** GET /ext/v1/load */
export const WorkerLoad = z.object({
  running: z.int().min(0),
  waiting: z.int().min(0),
  cache_use: z.number().min(0).max(1),
});
export type WorkerLoad = z.infer<typeof WorkerLoad>;
/** GET /ext/v1/models/{id} */
export const WorkerModel = z.object({
  model_id: z.string(),
  base_model: z.string(),
  step: z.int(),
  weight_version: z.int(),
  last_seq_id: z.int(),
  accumulated_datums: z.int(),
  checkpoints: z.array(z.object({ name: z.string(), path: z.string(), step: z.int(), bytes: z.number() })),
});
/** Typed errors of our worker: HTTP status plus this body. */
export const WorkerError = z.object({
  detail: z.string(),
  code: z.enum([
    "bad_input",
    "unknown_model",
    "conflict",
    "fenced",
    "sequence_gap",
    "step_mismatch",
    "busy",
    "oom",
    "no_space",
    "cancelled",
    "unauthorised",
    "too_large",
    "internal",
  ]),
  field: z.string().nullish(),
});

/** `/ext/v1/score`: per row one logprob for each token after the first. */
export const ScoreReply = z.object({ logprobs: z.array(z.array(z.number().nullable())) });

/** A line of a sample that is told as it is made: what is new of one, or why all have ended, or what went wrong. */
export const SampleNews = z.union([
  z.object({ sample: z.int().min(0), tokens: z.array(z.int()), logprobs: z.array(z.number()) }),
  z.object({ stop_reasons: z.array(z.enum(["stop", "length"])), weight_version: z.int().nullish() }),
  z.object({ error: WorkerError }),
]);
