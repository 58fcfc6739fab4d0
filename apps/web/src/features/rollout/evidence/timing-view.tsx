"use client";
import type { RolloutDetail, TurnView } from "@rolldeck/contracts/api/rollouts";
import { type JSX, useMemo } from "react";
import { EmptyState } from "../../../design/empty-state.tsx";
import { join } from "../../../design/join.ts";
import { Td, Th } from "../../../design/table.tsx";
import { useNow } from "../../../design/time-ago.tsx";
import { formatFraction } from "../../../format/numbers.ts";
import { formatDuration } from "../../../format/times.ts";
import { readReport } from "./test-results.tsx";
import { type TimingRow, timingRows } from "./timing-rows.ts";
import { type ArtifactPlace, useArtifactText } from "./use-artifact-text.ts";
import type { Evidence } from "./use-evidence.ts";

/** Each stage's wait and work on one scale, and what its sandboxes were busy with. */
export function TimingView({
  rollout,
  evidence,
  place,
  turns,
}: {
  rollout: RolloutDetail;
  evidence: Evidence;
  place: ArtifactPlace;
  turns: readonly TurnView[];
}): JSX.Element {
  const now = useNow();
  const report = useArtifactText(place, evidence.known.tests).data;
  const rows = useMemo(
    () =>
      timingRows(
        { spans: rollout.spans, attempt: place.attempt },
        evidence.sandboxes,
        report === undefined ? null : readReport(report),
        turns,
      ),
    [rollout.spans, place.attempt, evidence.sandboxes, report, turns],
  );
  const lasted = (row: TimingRow) => row.ms ?? (row.since === null ? 0 : Math.max(0, now - Date.parse(row.since)));
  const most = rows.reduce((max, row) => Math.max(max, lasted(row)), 1);
  if (rows.length === 0)
    return (
      <EmptyState title="No stage yet">
        <p>Times appear as the rollout goes through its stages.</p>
      </EmptyState>
    );
  return (
    <div className="min-h-0 flex-1 overflow-auto p-4">
      <table aria-label="Where the time went" className="w-full max-w-[1100px]">
        <thead>
          <tr>
            <Th className="w-[240px]">Stage</Th>
            <Th right className="w-[130px]">
              Time
            </Th>
            <Th right className="w-[90px]">
              Of its stage
            </Th>
            <Th>
              <span className="flex justify-between font-normal">
                <span className="num">0</span>
                <span className="num">{formatDuration(most)}</span>
              </span>
            </Th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key} className="hover:bg-g1">
              <Td
                className={join(
                  row.kind === "worked" ? "font-medium" : "text-sm",
                  row.kind === "waited" && "text-g7",
                  row.kind === "part" && (row.inner ? "pl-10!" : "pl-6!"),
                )}
              >
                {row.label}
              </Td>
              <Td right>
                {formatDuration(lasted(row))}
                {row.ms === null && <span className="text-g7"> so far</span>}
              </Td>
              <Td right className="text-g7">
                {row.ms !== null && row.ofMs ? formatFraction(Math.min(1, row.ms / row.ofMs)) : ""}
              </Td>
              <Td>
                <span
                  aria-hidden="true"
                  className={row.kind === "waited" ? "hatched block h-2.5 bg-g3" : "block h-2.5"}
                  style={{
                    width: `${(lasted(row) / most) * 100}%`,
                    minWidth: lasted(row) > 0 ? 2 : 0,
                    ...(row.kind === "waited" ? {} : { background: `var(--stage-${row.stage})` }),
                    ...(row.kind === "part" ? { opacity: row.inner ? 0.35 : 0.55 } : {}),
                  }}
                />
              </Td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="mt-3 text-sm text-g7">
        Bars are lengths, not places: what ran at the same time stands one below the other. Hatched is waiting.
      </p>
    </div>
  );
}
