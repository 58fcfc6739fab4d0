"use client";
import type { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import { type JSX, useMemo } from "react";
import { EmptyState } from "../../../design/empty-state.tsx";
import { Td, Th } from "../../../design/table.tsx";
import { formatFraction } from "../../../format/numbers.ts";
import { formatDuration } from "../../../format/times.ts";
import { readReport } from "./test-results.tsx";
import { timingRows } from "./timing-rows.ts";
import { type ArtifactPlace, useArtifactText } from "./use-artifact-text.ts";
import type { Evidence } from "./use-evidence.ts";

/** Each stage's wait and work on one scale, and what its sandboxes were busy with. */
export function TimingView({
  rollout,
  evidence,
  place,
}: {
  rollout: RolloutDetail;
  evidence: Evidence;
  place: ArtifactPlace;
}): JSX.Element {
  const report = useArtifactText(place, evidence.known.tests).data;
  const rows = useMemo(
    () =>
      timingRows(
        { spans: rollout.spans, attempt: place.attempt },
        evidence.sandboxes,
        report === undefined ? null : readReport(report),
      ),
    [rollout.spans, place.attempt, evidence.sandboxes, report],
  );
  const most = rows.reduce((max, { ms }) => Math.max(max, ms ?? 0), 1);
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
            <Th right className="w-[90px]">
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
                className={
                  row.kind === "worked" ? "font-medium" : row.kind === "part" ? "pl-6 text-sm" : "text-sm text-g7"
                }
              >
                {row.label}
              </Td>
              <Td right>{row.ms === null ? "going on" : formatDuration(row.ms)}</Td>
              <Td right className="text-g7">
                {row.ms !== null && row.ofMs ? formatFraction(Math.min(1, row.ms / row.ofMs)) : ""}
              </Td>
              <Td>
                <span
                  aria-hidden="true"
                  className={row.kind === "waited" ? "hatched block h-2.5 bg-g3" : "block h-2.5"}
                  style={{
                    width: `${((row.ms ?? 0) / most) * 100}%`,
                    minWidth: row.ms ? 2 : 0,
                    ...(row.kind === "waited" ? {} : { background: `var(--stage-${row.stage})` }),
                    ...(row.kind === "part" ? { opacity: 0.55 } : {}),
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
