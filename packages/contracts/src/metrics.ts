/**
 * Every number that is charted: its unit, direction and definition. Charts show the definition behind an (i). Runs over several
 * task sets keep some of them for each set too, under the set's label: `reward/success/memory-small`. What a backend says of an
 * update is kept beside them under its own name: `native/gpu-worker/grad_norm`.
 */
import { z } from "zod";
import { costMetricDefinitions } from "./cost-metrics.ts";
import { engineMetricDefinitions } from "./engine-metrics.ts";
import type { MetricDefinition } from "./metric-definition.ts";
import { sharedMetricDefinitions } from "./shared-metrics.ts";

export const metrics = {
  "reward/mean": {
    title: "Reward",
    unit: "reward",
    better: "higher",
    section: "reward",
    definition:
      "Mean reward of the step's scored rollouts, cut ones included; unscored ones are left out, never counted as 0.",
  },
  "reward/success": {
    title: "Success",
    unit: "fraction",
    better: "higher",
    section: "reward",
    definition: "Scored rollouts that the verifier called a success ÷ scored rollouts of the step.",
  },
  "evaluate/reward": {
    title: "Held-out reward",
    unit: "reward",
    better: "higher",
    section: "reward",
    definition: "Mean reward on held-out instances, which are never trained on.",
  },
  "evaluate/success": {
    title: "Held-out success",
    unit: "fraction",
    better: "higher",
    section: "reward",
    definition: "Successes ÷ scored rollouts on held-out instances, which are never trained on.",
  },
  "policy/entropy": {
    title: "Entropy",
    unit: "nats/token",
    better: "none",
    section: "stability",
    definition:
      "Mean of −logprob over sampled tokens: a sampled estimate of the policy's entropy at the sampling temperature.",
  },
  "policy/logprob-gap": {
    title: "Log-prob gap",
    unit: "nats",
    better: "lower",
    section: "stability",
    definition: "Largest |trainer logprob − sampler logprob| over the step's trained tokens before the update.",
  },
  "policy/grad-norm": {
    title: "Gradient norm",
    unit: "L2",
    better: "none",
    section: "stability",
    definition: "Global L2 norm of the accumulated gradient before clipping.",
  },
  "policy/learning-rate": {
    title: "Learning rate",
    unit: "rate",
    better: "none",
    section: "stability",
    definition:
      "AdamW's learning rate at the step's update, by the run's schedule; 0 where the step had nothing to train.",
  },
  "policy/loss": {
    title: "Loss",
    unit: "loss",
    better: "none",
    section: "stability",
    definition: "Summed token loss with denominators applied, over the whole step.",
  },
  "policy/clip-fraction": {
    title: "Clip fraction",
    unit: "fraction",
    better: "lower",
    section: "stability",
    definition: "Trained tokens whose ratio left the clip range ÷ trained tokens.",
  },
  "policy/kl": {
    title: "KL to the start",
    unit: "nats/token",
    better: "lower",
    section: "stability",
    definition:
      "Mean over the step's trained tokens of the run's KL estimator between the policy before the update and the one that the run began with; only where the loss has a KL term.",
  },
  "policy/left-out": {
    title: "Left out as off-policy",
    unit: "fraction",
    better: "lower",
    section: "stability",
    definition:
      "Tokens that algorithm.offPolicy left out ÷ tokens that would have been trained; only where a run corrects by the trainer's logprobs.",
  },
  "staleness/mean": {
    title: "Staleness",
    unit: "versions",
    better: "lower",
    section: "stability",
    definition:
      "Mean over the step's groups of (version before the update − oldest version that a rollout of the group began with).",
  },
  "staleness/max": {
    title: "Largest staleness",
    unit: "versions",
    better: "lower",
    section: "stability",
    definition: "Largest staleness of a group in the step's update; never above dispatcher.maxStaleness.",
  },
  "groups/zero-variance": {
    title: "Zero-variance groups",
    unit: "fraction",
    better: "lower",
    section: "stability",
    definition: "Groups whose scored rewards differ by at most 1e-6 ÷ groups of the step.",
  },
  "rollouts/turns": {
    title: "Turns",
    unit: "turns",
    better: "none",
    section: "rollouts",
    definition: "Mean model calls per settled rollout.",
  },
  "rollouts/sampled-tokens": {
    title: "Sampled tokens",
    unit: "tokens",
    better: "none",
    section: "rollouts",
    definition: "Mean sampled tokens per settled rollout; tool output and template are not counted.",
  },
  "rollouts/cut": {
    title: "Cut rollouts",
    unit: "fraction",
    better: "lower",
    section: "rollouts",
    definition: "Rollouts ended by turn limit, context, length, loop or no usable call ÷ settled rollouts.",
  },
  "rollouts/no-finish": {
    title: "Never finished",
    unit: "fraction",
    better: "lower",
    section: "rollouts",
    definition: "Rollouts that used up their turns without ending the work themselves ÷ settled rollouts.",
  },
  "rollouts/bad-calls": {
    title: "Bad calls",
    unit: "calls",
    better: "lower",
    section: "rollouts",
    definition:
      "Calls that could not run (no such tool, arguments that do not fit) and turns without a readable call, per settled rollout.",
  },
  "rollouts/failed": {
    title: "Failed rollouts",
    unit: "fraction",
    better: "lower",
    section: "rollouts",
    definition:
      "Rollouts that ended without a score (sandbox, model server, verifier, infrastructure) ÷ settled rollouts.",
  },
  "throughput/tokens-per-second": {
    title: "Sampled tokens/s",
    unit: "tokens/s",
    better: "higher",
    section: "throughput",
    definition: "Sampled tokens of the step ÷ seconds from its creation to its last settled rollout.",
  },
  "time/gather": {
    title: "Gather time",
    unit: "s",
    better: "lower",
    section: "throughput",
    definition: "Seconds from the step's creation until its last rollout settled.",
  },
  "time/update": {
    title: "Update time",
    unit: "s",
    better: "lower",
    section: "throughput",
    definition: "Seconds from the start of the update until the new version serves.",
  },
  ...engineMetricDefinitions,
  ...costMetricDefinitions,
  ...sharedMetricDefinitions,
} as const satisfies Record<string, MetricDefinition>;
export type MetricName = keyof typeof metrics;
export const metricNames = Object.keys(metrics) as [MetricName, ...MetricName[]];

/** Kept for each task set of a run that has several. */
export const perSetMetrics = [
  "reward/mean",
  "reward/success",
  "rollouts/turns",
  "evaluate/reward",
  "evaluate/success",
] as const satisfies readonly MetricName[];
export type PerSetMetric = (typeof perSetMetrics)[number];
export type SetMetricName = `${PerSetMetric}/${string}`;
/** Longest label of a task set in a metric's name. */
const maxLabel = 110;
/** Longest name of a backend's own. */
const maxNative = 120;
const NativeMetricName = z.templateLiteral([
  "native/",
  z.string().regex(/[a-z0-9-]{1,60}/),
  "/",
  z.string().min(1).max(maxNative),
]);
export type NativeMetricName = z.infer<typeof NativeMetricName>;
export const AnyMetricName = z.union([
  z.enum(metricNames),
  z.templateLiteral([z.enum(perSetMetrics), "/", z.string().min(1).max(maxLabel)]),
  NativeMetricName,
]);
export type AnyMetricName = z.infer<typeof AnyMetricName>;

/** What the sets of a config are called in metric names: the task's name, with its place where the name comes again. */
export const taskSetLabels = (taskSets: readonly { readonly name: string }[]): string[] =>
  taskSets.map(({ name }, at) => (taskSets.filter((set) => set.name === name).length > 1 ? `${name} ${at + 1}` : name));

export const setMetric = (metric: PerSetMetric, label: string): SetMetricName => `${metric}/${label}`;

/** A backend's own number; null where its name can be none of a metric: servers that others run may say anything. */
export const nativeMetric = (backend: string, name: string): NativeMetricName | null =>
  /[\p{Cc}\p{Cs}]/u.test(name) ? null : (NativeMetricName.safeParse(`native/${backend}/${name}`).data ?? null);

/** The backend and its word for the number; null for a metric of ours. */
export function nativeParts(name: string): { readonly backend: string; readonly name: string } | null {
  const [, backend, own] = /^native\/([^/]+)\/([\s\S]+)$/.exec(name) ?? [];
  return backend === undefined || own === undefined ? null : { backend, name: own };
}

/** Of a set's metric: that of the whole, with the set named. */
export function metricDefinition(name: AnyMetricName): MetricDefinition {
  const own = metricNames.find((metric) => metric === name);
  if (own !== undefined) return metrics[own];
  const native = nativeParts(name);
  if (native !== null)
    return {
      title: native.name,
      unit: "",
      better: "none",
      section: "native",
      definition: `As ${native.backend} reports it for an update, unchanged; another backend's number of this name may mean something else.`,
    };
  const whole = perSetMetrics.find((metric) => name.startsWith(`${metric}/`)) ?? "reward/mean";
  const label = name.slice(whole.length + 1);
  const { title, definition, ...rest } = metrics[whole];
  return { ...rest, title: `${title}, ${label}`, definition: `Of task set ${label} alone. ${definition}` };
}
