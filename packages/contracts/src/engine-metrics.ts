/**
 * What a GPU worker says of its machine with each optimizer step, for the time since the one before. Other runs on the same worker
 * are in these numbers; what it can't tell, as most of it on a CPU, has no point. Its README has the formulas.
 */
import type { MetricDefinition } from "./metric-definition.ts";

interface EngineMetricDefinition extends MetricDefinition {
  /** The worker's word for it. */
  readonly from: string;
  /** What its number is divided by. */
  readonly per?: number;
}
const speed = { section: "throughput", unit: "tokens/s", better: "higher" } as const;

export const engineMetricDefinitions = {
  "engine/prefill-tokens-per-second": {
    ...speed,
    from: "prefill_tokens_per_s",
    title: "Prefill tokens/s",
    definition:
      "Prompt tokens read, without those found in the prefix cache ÷ engine seconds of the sampling steps that read any.",
  },
  "engine/decode-tokens-per-second": {
    ...speed,
    from: "decode_tokens_per_s",
    title: "Decode tokens/s",
    definition: "Tokens drawn in sampling steps that read no prompt ÷ engine seconds of those steps.",
  },
  "engine/forward-tokens-per-second": {
    ...speed,
    from: "forward_tokens_per_s",
    title: "Forward tokens/s",
    definition: "Tokens of rows, prompts included, that passed without a gradient ÷ engine seconds of these passes.",
  },
  "engine/update-tokens-per-second": {
    ...speed,
    from: "update_tokens_per_s",
    title: "Update tokens/s",
    definition:
      "Tokens of rows, prompts included, that passed forward and backward ÷ engine seconds of that and of the optimizer step.",
  },
  "engine/mfu": {
    section: "throughput",
    unit: "fraction",
    better: "higher",
    from: "mfu",
    title: "MFU of the update",
    definition:
      "Σ over rows of T·(6N + 6·layers·heads·head size·T) operations (4N under an adapter), recomputation not counted ÷ (the update's engine seconds × the device's peak in the type it computes in). N: parameters, without an untied input embedding. No point where the peak is not known.",
  },
  "engine/utilisation": {
    section: "throughput",
    unit: "fraction",
    better: "higher",
    from: "gpu_utilisation",
    title: "GPU utilisation",
    definition:
      "Share of the driver's last sampling period in which the GPU did something, as NVML says it at the end of the step.",
  },
  "engine/memory": {
    section: "throughput",
    unit: "GiB",
    better: "lower",
    from: "gpu_memory_bytes",
    per: 1024 ** 3,
    title: "GPU memory",
    definition: "Memory of the GPU that is in use, of all processes, as NVML says it at the end of the step.",
  },
} as const satisfies Record<`engine/${string}`, EngineMetricDefinition>;
export type EngineMetricName = keyof typeof engineMetricDefinitions;

/** The points of a step, from what its worker said; what it did not say has none. */
export function enginePoints(said: Readonly<Record<string, number>>): Partial<Record<EngineMetricName, number>> {
  const known = Object.entries<EngineMetricDefinition>(engineMetricDefinitions).flatMap(([name, { from, per = 1 }]) => {
    const value = said[from];
    return value === undefined ? [] : [[name, value / per] as const];
  });
  return Object.fromEntries(known);
}
