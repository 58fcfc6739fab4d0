/** The curated overview: at most twelve charts, the most important first. */
import { type MetricName, metrics } from "@rolldeck/contracts/metrics";

export interface OverviewChart {
  readonly title: string;
  readonly lines: readonly { readonly metric: MetricName; readonly label: string }[];
  readonly big?: boolean;
}
const one = (metric: MetricName): OverviewChart => ({
  title: metrics[metric].title,
  lines: [{ metric, label: metrics[metric].title }],
});

export const overviewCharts: readonly OverviewChart[] = [
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
export const overviewMetrics: readonly MetricName[] = [
  ...new Set(overviewCharts.flatMap((chart) => chart.lines.map((line) => line.metric))),
];
export const chartDefinition = (chart: OverviewChart): string =>
  chart.lines
    .map(({ metric, label }) => (chart.lines.length > 1 ? `${label}: ` : "") + metrics[metric].definition)
    .join(" ");
export const chartUnit = (chart: OverviewChart): string => {
  const [first] = chart.lines;
  return first ? metrics[first.metric].unit : "";
};
