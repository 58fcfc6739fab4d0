import type { ComparisonDetail } from "@rolldeck/contracts/api/comparisons";
import { sharedMetricDefinitions } from "@rolldeck/contracts/shared-metrics";
import Link from "next/link";
import type { JSX } from "react";
import { join } from "../../design/join.ts";
import { StatusMark } from "../../design/status-mark.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { formatCount, formatInUnit, formatNumber } from "../../format/numbers.ts";
import type { Strokes } from "../compare/compared.ts";
import { StrokeMark } from "../compare/run-name.tsx";

const columns = ["shared/reward", "shared/success", "shared/mismatch-logprob", "shared/mismatch-prob"] as const;

/** Units stand in the header once; a percentage keeps its sign and a reward has none. */
const hasUnit = (name: (typeof columns)[number]): boolean =>
  !["fraction", "reward"].includes(sharedMetricDefinitions[name].unit);

/** The runs of a comparison: how far each is, and its last shared numbers. */
export function VariantTable({
  comparison,
  strokes,
  hidden,
  onToggle,
}: {
  comparison: ComparisonDetail;
  strokes: Strokes;
  hidden: readonly string[];
  onToggle(runId: string): void;
}): JSX.Element {
  const { variants, compared } = comparison;
  const last = (runId: string, name: (typeof columns)[number]): number | null =>
    compared.metrics.find((metric) => metric.name === name)?.verdict.find((each) => each.runId === runId)?.final ??
    null;
  return (
    <section aria-label="Variants">
      <Table label="Variants">
        <thead>
          <tr>
            <Th>Variant</Th>
            <Th>Backend</Th>
            <Th>Status</Th>
            <Th right>Step</Th>
            {columns.map((name) => (
              <Th
                key={name}
                right
                className="h-10!"
                title={`Its last value. ${sharedMetricDefinitions[name].definition}`}
              >
                {sharedMetricDefinitions[name].title}
                {hasUnit(name) && (
                  <span className="block text-xs leading-3 font-normal">{sharedMetricDefinitions[name].unit}</span>
                )}
              </Th>
            ))}
            <Th title="Whether the charts draw its lines; keys 1 to 9">Lines</Th>
          </tr>
        </thead>
        <tbody>
          {variants.map(({ label, runId }) => {
            const run = compared.runs.find((each) => each.runId === runId);
            const off = hidden.includes(runId);
            return (
              <tr key={runId} className={join("hover:bg-g1", off && "text-g7")}>
                <Td>
                  <span className="inline-flex min-w-0 items-center gap-1.5">
                    <StrokeMark stroke={strokes.get(runId)} />
                    <Link href={`/runs/${runId}`} className="truncate hover:text-accent-text hover:underline">
                      {label}
                    </Link>
                  </span>
                </Td>
                <Td className="mono text-sm whitespace-nowrap">{run?.backend ?? "n/a"}</Td>
                <Td>
                  {run && (
                    <span className="inline-flex max-w-[260px] min-w-0 items-center gap-2">
                      <StatusMark status={run.status} withLabel />
                      {run.reason && (
                        <span className="truncate text-sm text-g7" title={run.reason}>
                          {run.reason}
                        </span>
                      )}
                    </span>
                  )}
                </Td>
                <Td right>
                  {formatCount(run?.step)}
                  <span className="text-g7">/{formatCount(run?.steps)}</span>
                </Td>
                {columns.map((name) => (
                  <Td key={name} right>
                    {hasUnit(name)
                      ? formatNumber(last(runId, name))
                      : formatInUnit(last(runId, name), sharedMetricDefinitions[name].unit)}
                  </Td>
                ))}
                <Td>
                  <button
                    type="button"
                    aria-pressed={!off}
                    aria-label={`Lines of ${label}`}
                    onClick={() => onToggle(runId)}
                    className="text-sm text-g7 hover:text-g9 hover:underline"
                  >
                    {off ? "show" : "hide"}
                  </button>
                </Td>
              </tr>
            );
          })}
        </tbody>
      </Table>
    </section>
  );
}
