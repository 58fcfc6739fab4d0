import { metrics } from "@rolldeck/contracts/metrics";
import type { JSX } from "react";
import { StatusMark } from "../../design/status-mark.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { formatFraction, formatNumber } from "../../format/numbers.ts";
import type { Compared } from "./compared.ts";
import { RunName } from "./run-name.tsx";

const shownMetrics = [
  "reward/mean",
  "reward/success",
  "evaluate/success",
  "throughput/tokens-per-second",
  "policy/logprob-gap",
] as const;

/** Final and best per run, with the change against the baseline; runs that lack a metric say so. */
export function VerdictTable({ comparison, labels, strokes }: Compared): JSX.Element {
  const columns = shownMetrics.flatMap((name) => comparison.metrics.filter((metric) => metric.name === name));
  const [baseline] = comparison.runs;
  return (
    <section aria-label="Verdict">
      <h2 className="mb-1 text-lg font-semibold">Verdict</h2>
      <Table label="Verdict">
        <thead>
          <tr>
            <Th>Run</Th>
            <Th right>Step</Th>
            {columns.map((metric) => (
              <Th key={metric.name} right className="h-10!" title={metrics[metric.name].definition}>
                {metrics[metric.name].title}
                <span className="block text-xs leading-3 font-normal">
                  last · best{unitWords(metrics[metric.name].unit)}
                </span>
              </Th>
            ))}
          </tr>
        </thead>
        <tbody>
          {comparison.runs.map((run) => (
            <tr key={run.runId} className="hover:bg-g1">
              <Td>
                <span className="flex items-center gap-2">
                  <StatusMark status={run.status} />
                  <RunName runId={run.runId} labels={labels} strokes={strokes} />
                </span>
              </Td>
              <Td right>
                {run.step}
                <span className="text-g7">/{run.steps}</span>
              </Td>
              {columns.map((metric) => {
                const { unit, better } = metrics[metric.name];
                const own = metric.verdict.find((each) => each.runId === run.runId);
                const base = metric.verdict.find((each) => each.runId === baseline?.runId);
                return (
                  <Td key={metric.name} right className="whitespace-nowrap">
                    {bare(own?.final ?? null, unit)}
                    <span className="text-g7"> · {bare(own?.best ?? null, unit)}</span>
                    {run.runId === baseline?.runId ? (
                      <span className="ml-2 inline-block min-w-[68px] text-g7">baseline</span>
                    ) : (
                      <Delta value={own?.final ?? null} base={base?.final ?? null} better={better} unit={unit} />
                    )}
                  </Td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </Table>
    </section>
  );
}

/** The unit stands in the header once; fractions keep their sign, which reads as part of the number. */
const bare = (value: number | null, unit: string): string =>
  unit === "fraction" ? formatFraction(value) : formatNumber(value);
const unitWords = (unit: string): string => (["fraction", "reward", "turns"].includes(unit) ? "" : `, ${unit}`);

function Delta({
  value,
  base,
  better,
  unit,
}: {
  value: number | null;
  base: number | null;
  better: "higher" | "lower" | "none";
  unit: string;
}): JSX.Element | null {
  if (value === null || base === null) return null;
  const change = value - base;
  const good = better === "none" || change === 0 ? null : change > 0 === (better === "higher");
  const text = unit === "fraction" ? `${formatNumber(change * 100)}` : formatNumber(change);
  return (
    <span
      title={`Against the baseline${unit === "fraction" ? ", percentage points" : ""}`}
      className={`ml-2 inline-block min-w-[68px] ${good === null ? "text-g7" : good ? "text-done" : "text-failed"}`}
    >
      {change > 0 ? "▲ +" : change < 0 ? "▼ " : "= "}
      {text}
    </span>
  );
}
