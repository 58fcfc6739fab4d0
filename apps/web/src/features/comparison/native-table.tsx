import type { ComparisonDetail } from "@rolldeck/contracts/api/comparisons";
import { metricDefinition } from "@rolldeck/contracts/metrics";
import type { JSX } from "react";
import { Table, Td, Th } from "../../design/table.tsx";
import { formatNumber } from "../../format/numbers.ts";
import type { Labels, Strokes } from "../compare/compared.ts";
import { RunName } from "../compare/run-name.tsx";

/** What each backend says of its updates, under its own names: one row a name and backend, so that nothing looks comparable that is not. */
export function NativeTable({
  comparison,
  labels,
  strokes,
}: {
  comparison: ComparisonDetail;
  labels: Labels;
  strokes: Strokes;
}): JSX.Element {
  const { native } = comparison;
  const metrics = [...new Set(native.flatMap(({ values }) => values.map(({ metric }) => metric)))].sort();
  return (
    <section aria-label="Native values">
      <h2 className="mb-1 text-lg font-semibold">
        As each backend reports it <span className="num text-sm font-normal text-g7">{metrics.length}</span>
      </h2>
      <p className="mb-1 max-w-[960px] text-sm text-g7">
        The last value of each, in the backend's own unit. One name of two backends is not one number: each has a row.
      </p>
      {metrics.length === 0 ? (
        <p className="text-g8">Nothing yet: a backend's own numbers come with its first update.</p>
      ) : (
        <Table label="Native values">
          <thead>
            <tr>
              <Th>Backend</Th>
              <Th>Its own name</Th>
              {native.map(({ runId }) => (
                <Th key={runId} right className="max-w-[220px]">
                  <RunName runId={runId} labels={labels} strokes={strokes} />
                </Th>
              ))}
            </tr>
          </thead>
          <tbody>
            {metrics.map((metric) => {
              const { title, definition } = metricDefinition(metric);
              const found = native.map(({ values }) => values.find((each) => each.metric === metric));
              const backend = native[found.findIndex((each) => each !== undefined)]?.backend;
              return (
                <tr key={metric} className="hover:bg-g1">
                  <Td className="mono text-sm">{backend}</Td>
                  <Td className="mono text-sm" title={definition}>
                    {title}
                  </Td>
                  {native.map(({ runId }, at) => {
                    const value = found[at];
                    return (
                      <Td key={runId} right title={value && `step ${value.step}: ${value.value ?? "not finite"}`}>
                        {value ? (value.value === null ? "not finite" : formatNumber(value.value)) : "n/a"}
                      </Td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
        </Table>
      )}
    </section>
  );
}
