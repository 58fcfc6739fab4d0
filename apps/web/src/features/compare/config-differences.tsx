import type { JSX } from "react";
import { join } from "../../design/join.ts";
import { Table, Td, Th } from "../../design/table.tsx";
import type { Compared } from "./compared.ts";
import { differenceRows } from "./difference-rows.ts";
import { RunName } from "./run-name.tsx";

/** What differs, first: settings equal in all runs are left out. */
export function ConfigDifferences({ comparison, labels, strokes }: Compared): JSX.Element {
  const { runs } = comparison;
  const rows = differenceRows(comparison.configDifferences);
  return (
    <section aria-label="Config differences">
      <h2 className="mb-1 text-lg font-semibold">
        Config differences <span className="num text-sm font-normal text-g7">{rows.length}</span>
      </h2>
      {rows.length === 0 ? (
        <p className="text-g8">
          {runs.length < 2 ? "Add another run to see what differs." : "None: the configs are equal in every setting."}
        </p>
      ) : (
        <Table label="Config differences">
          <thead>
            <tr>
              <Th>Setting</Th>
              {runs.map((run) => (
                <Th key={run.runId} className="max-w-[220px]">
                  <RunName runId={run.runId} labels={labels} strokes={strokes} />
                </Th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((difference) => (
              <tr key={difference.path} className="hover:bg-g1">
                <Td className="mono text-sm">{difference.path}</Td>
                {runs.map((run, index) => {
                  const value = difference.values[index] ?? null;
                  const differs = index > 0 && value !== (difference.values[0] ?? null);
                  return (
                    <Td key={run.runId} className="max-w-[220px]">
                      <span
                        title={value ?? "not set"}
                        className={join("mono block truncate text-sm", differs ? "font-semibold text-g9" : "text-g8")}
                      >
                        {value ?? "n/a"}
                      </span>
                    </Td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </section>
  );
}
