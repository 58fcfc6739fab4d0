/** One sentence that says how a run goes, from its metrics alone. Pure. */
import type { MetricSeries, RunDetail } from "@rolldeck/contracts/api/runs";
import { type MetricName, metricDefinition } from "@rolldeck/contracts/metrics";
import { formatFraction, formatNumber } from "../../format/numbers.ts";

const ends = (series: readonly MetricSeries[], name: MetricName) => {
  const points = series.find((each) => each.name === name)?.points.filter((point) => point.value !== null) ?? [];
  return { first: points[0] ?? null, last: points.at(-1) ?? null, count: points.length };
};

/** Alarms come before praise; null when there is nothing to say yet. */
export function verdict(run: RunDetail, series: readonly MetricSeries[]): { text: string; alarm: boolean } | null {
  const failed = ends(series, "rollouts/failed").last;
  if (failed?.value && failed.value > 0.2)
    return {
      text: `${formatFraction(failed.value)} of the rollouts of step ${failed.step} failed without a score.`,
      alarm: true,
    };
  const broken = series
    .flatMap(({ name, points }) => points.map((point) => ({ name, point })))
    .findLast(({ point }) => point.nonFinite !== null);
  if (broken)
    return {
      text: `${metricDefinition(broken.name).title} is ${broken.point.nonFinite} at step ${broken.point.step}.`,
      alarm: true,
    };
  const flat = ends(series, "groups/zero-variance").last;
  const heldOut = ends(series, "evaluate/success");
  const success = heldOut.count > 0 ? heldOut : ends(series, "reward/success");
  const reward = ends(series, "reward/mean");
  // The step's own success: the newest evaluation may be many steps old.
  const solved = ends(series, "reward/success").last?.value ?? success.last?.value ?? 1;
  if (flat?.value && flat.value > 0.5 && solved < 0.5)
    return {
      text: `${formatFraction(flat.value)} of the groups of step ${flat.step} teach nothing: their rewards are all equal.`,
      alarm: true,
    };
  const what = heldOut.count > 0 ? "Held-out success" : "Success";
  const { first, last } = success;
  if (first && last && first.step !== last.step) {
    const way = (last.value ?? 0) >= (first.value ?? 0) ? "rose" : "fell";
    return {
      text: `${what} ${way} from ${formatFraction(first.value)} at step ${first.step} to ${formatFraction(last.value)} at step ${last.step}.`,
      alarm: false,
    };
  }
  if (reward.last)
    return {
      text: `Reward is ${formatNumber(reward.last.value)} at step ${reward.last.step} of ${run.steps}.`,
      alarm: false,
    };
  return null;
}
