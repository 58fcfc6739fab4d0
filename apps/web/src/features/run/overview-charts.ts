/** The curated overview: twelve charts, the most important first; of several task sets, three more; and what the machine did, if known. */
import {
  type AnyMetricName,
  type MetricName,
  metricDefinition,
  metrics,
  type PerSetMetric,
  setMetric,
  taskSetLabels,
} from "@rolldeck/contracts/metrics";
import type { RunConfig } from "@rolldeck/contracts/run-config";

export interface OverviewChart {
  readonly title: string;
  readonly lines: readonly { readonly metric: AnyMetricName; readonly label: string }[];
  readonly big?: boolean;
  /** The lines are sets of equal standing, not one number and what goes with it. */
  readonly equals?: boolean;
  /** Not there without points: most model servers do not tell it. */
  readonly ifKnown?: boolean;
}
const one = (metric: MetricName): OverviewChart => ({
  title: metrics[metric].title,
  lines: [{ metric, label: metrics[metric].title }],
});

const wholeRun: readonly OverviewChart[] = [
  {
    title: "Reward",
    big: true,
    lines: [
      { metric: "reward/mean", label: "train" },
      { metric: "evaluate/reward", label: "held-out" },
    ],
  },
  {
    title: "Success",
    big: true,
    lines: [
      { metric: "reward/success", label: "train" },
      { metric: "evaluate/success", label: "held-out" },
    ],
  },
  one("rollouts/turns"),
  one("throughput/tokens-per-second"),
  one("policy/entropy"),
  one("policy/grad-norm"),
  one("policy/logprob-gap"),
  {
    title: "Cut and failed rollouts",
    lines: [
      { metric: "rollouts/cut", label: "cut" },
      { metric: "rollouts/failed", label: "failed" },
    ],
  },
  one("groups/zero-variance"),
  {
    title: "Time of a step",
    lines: [
      { metric: "time/gather", label: "gather" },
      { metric: "time/update", label: "update" },
    ],
  },
  one("rollouts/sampled-tokens"),
  one("policy/clip-fraction"),
];
const machine: readonly OverviewChart[] = [
  {
    title: "Model server tokens/s",
    equals: true,
    ifKnown: true,
    lines: [
      { metric: "engine/prefill-tokens-per-second", label: "prefill" },
      { metric: "engine/decode-tokens-per-second", label: "decode" },
      { metric: "engine/forward-tokens-per-second", label: "forward" },
      { metric: "engine/update-tokens-per-second", label: "update" },
    ],
  },
  {
    title: "MFU and utilisation",
    ifKnown: true,
    lines: [
      { metric: "engine/mfu", label: "MFU" },
      { metric: "engine/utilisation", label: "utilisation" },
    ],
  },
  { ...one("engine/memory"), ifKnown: true },
];
const bySet = (title: string, metric: PerSetMetric, labels: readonly string[]): OverviewChart => ({
  title,
  equals: true,
  lines: labels.map((label) => ({ metric: setMetric(metric, label), label })),
});

export function overviewCharts({ taskSets }: Pick<RunConfig, "taskSets">): readonly OverviewChart[] {
  if (taskSets.length < 2) return [...wholeRun, ...machine];
  const labels = taskSetLabels(taskSets);
  return [
    ...wholeRun.slice(0, 2),
    bySet("Success by task set", "reward/success", labels),
    bySet("Held-out by task set", "evaluate/success", labels),
    bySet("Turns by task set", "rollouts/turns", labels),
    ...wholeRun.slice(2),
    ...machine,
  ];
}
/** At most as many as one answer holds, the charts in their order. */
export const metricsOf = (charts: readonly OverviewChart[]): AnyMetricName[] =>
  [...new Set(charts.flatMap((chart) => chart.lines.map((line) => line.metric)))].slice(0, 50);
export const chartDefinition = (chart: OverviewChart): string =>
  chart.lines
    .map(({ metric, label }) => (chart.lines.length > 1 ? `${label}: ` : "") + metricDefinition(metric).definition)
    .join(" ");
export const chartUnit = (chart: OverviewChart): string => {
  const [first] = chart.lines;
  return first ? metricDefinition(first.metric).unit : "";
};
