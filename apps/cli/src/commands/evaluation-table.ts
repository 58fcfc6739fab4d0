/** Evaluations as text: a table of scores, then the difference from the baseline in a sentence. */
import type { Estimate, EvaluationReport } from "@rolldeck/contracts/api/evaluation";
import { plain, table } from "./output.ts";

export function evaluationTable({ evaluations, baseline }: EvaluationReport): string {
  const [newest] = evaluations;
  if (newest === undefined) return "no evaluation yet";
  const ks = newest.all.passAt.map(({ k }) => k);
  const rows = evaluations.flatMap(({ version, all, taskSets }) =>
    [{ taskSet: "all", scores: all }, ...(taskSets.length > 1 ? taskSets : [])].map(({ taskSet, scores }) => [
      version,
      plain(taskSet),
      withInterval(scores.reward),
      ...scores.passAt.map(({ estimate }) => withInterval(estimate)),
      `${scores.scored}/${scores.rollouts}`,
    ]),
  );
  const head = ["version", "task set", "reward", ...ks.map((k) => `pass@${k}`), "scored"];
  const lines = [table(head, rows), "± half of the 95 % interval over instances"];
  if (baseline?.success) {
    const { difference, low, high, pValue, pairs } = baseline.success;
    const range = `95 % interval ${signed(low)} to ${signed(high)}`;
    lines.push(
      `success against ${plain(baseline.runName)} (${baseline.runId}, version ${baseline.version}): ${signed(difference)}, ${range}, p = ${pValue.toPrecision(2)}, ${pairs} shared instances`,
    );
  } else if (baseline !== null) lines.push(`no two instances are shared with ${plain(baseline.runName)}`);
  return lines.join("\n");
}

const withInterval = (estimate: Estimate | null): string => {
  if (estimate === null) return "n/a";
  const value = estimate.value.toFixed(3);
  return estimate.halfWidth === null ? value : `${value} ± ${estimate.halfWidth.toFixed(3)}`;
};
const signed = (value: number): string => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
