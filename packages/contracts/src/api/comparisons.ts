/**
 * `/api/v1/comparisons`: one config launched as several runs that differ in what each variant says, and looked at together by numbers
 * that mean the same in all of them.
 */
import { z } from "zod";
import { label } from "../label.ts";
import { AnyMetricName } from "../metrics.ts";
import { sharedMetricNames } from "../shared-metrics.ts";
import { Comparison, RunId } from "./runs.ts";

export const maxVariants = 16;

const Change = z.record(z.string().min(1).max(200), z.json());
const Variant = z.strictObject({
  /** What the variant is called on the page; the run's name ends with it. */
  label: label(60),
  /** Merged into the config: mappings key by key, all else as a whole. */
  change: Change.default({}),
});

export const LaunchComparison = z.strictObject({
  name: label(120),
  /** An object, or YAML or JSON text: what the variants have in common. */
  config: z.unknown(),
  variants: z
    .array(Variant)
    .min(2)
    .max(maxVariants)
    .refine((variants) => new Set(variants.map((variant) => variant.label)).size === variants.length, {
      message: "two variants have the same label",
    }),
});
export type LaunchComparison = z.infer<typeof LaunchComparison>;

export const LaunchedComparison = z.object({
  comparisonId: z.string(),
  /** In the order of the variants. */
  runs: z.array(z.object({ label: z.string(), runId: z.string() })),
});
export type LaunchedComparison = z.infer<typeof LaunchedComparison>;

export const ComparisonRef = z.strictObject({ comparisonId: RunId });

export const ListComparisons = z.strictObject({
  limit: z.int().min(1).max(100).default(20),
  /** Of the answer before. */
  cursor: z.string().max(200).nullish(),
});
export const ComparisonPage = z.object({
  items: z.array(
    z.object({
      comparisonId: z.string(),
      name: z.string(),
      createdAt: z.string(),
      labels: z.array(z.string()),
      runIds: z.array(z.string()),
    }),
  ),
  nextCursor: z.string().nullable(),
});
export type ComparisonPage = z.infer<typeof ComparisonPage>;

/** The last value of each number that a backend gave under its own name. */
export const NativeValues = z.object({
  runId: z.string(),
  backend: z.string(),
  values: z.array(
    z.object({
      metric: AnyMetricName,
      /** As the backend calls it. */
      name: z.string(),
      step: z.int(),
      /** Null: it was not finite. */
      value: z.number().nullable(),
    }),
  ),
});
export type NativeValues = z.infer<typeof NativeValues>;

export const ComparisonDetail = z.object({
  comparisonId: z.string(),
  name: z.string(),
  createdAt: z.string(),
  variants: z.array(z.object({ label: z.string(), runId: z.string(), change: Change })),
  /** The runs in the order of the variants, by the shared metrics. */
  compared: Comparison,
  native: z.array(NativeValues),
  /** Where numbers that sound alike are not: what each shared definition is called elsewhere, and what is not comparable. */
  notes: z.array(z.object({ metrics: z.array(z.enum(sharedMetricNames)), text: z.string() })),
});
export type ComparisonDetail = z.infer<typeof ComparisonDetail>;
