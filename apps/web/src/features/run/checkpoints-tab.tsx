"use client";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import Link from "next/link";
import type { JSX } from "react";
import { EmptyState } from "../../design/empty-state.tsx";
import { ActionsTh, Table, Td, Th } from "../../design/table.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import { formatBytes, formatCount } from "../../format/numbers.ts";

export function CheckpointsTab({ run }: { run: RunDetail }): JSX.Element {
  const { every, keep } = run.config.checkpoints;
  if (run.checkpoints.length === 0) {
    return (
      <EmptyState title="No checkpoint yet">
        <p>
          This run saves one every {formatCount(every)} steps and keeps the newest {formatCount(keep)}; the first comes
          with step {formatCount(Math.min(every, run.steps))}.
        </p>
      </EmptyState>
    );
  }
  return (
    <div className="max-w-[860px] p-4">
      <p className="mb-2 text-sm text-g7">
        One every {formatCount(every)} steps; the newest {formatCount(keep)} are kept.
      </p>
      <Table label="Checkpoints">
        <thead>
          <tr>
            <Th right>Version</Th>
            <Th>Name</Th>
            <Th right>Size</Th>
            <Th right>Saved</Th>
            <ActionsTh />
          </tr>
        </thead>
        <tbody>
          {run.checkpoints.map((checkpoint) => (
            <tr key={checkpoint.version} className="hover:bg-g1">
              <Td right>{formatCount(checkpoint.version)}</Td>
              <Td className="mono text-sm">{checkpoint.name}</Td>
              <Td right>{formatBytes(checkpoint.bytes)}</Td>
              <Td right>
                <TimeAgo at={checkpoint.createdAt} />
              </Td>
              <Td>
                <Link
                  href={`/runs/new?from=${run.runId}&version=${checkpoint.version}`}
                  className="text-sm text-accent-text hover:underline"
                >
                  Start a run from it
                </Link>
              </Td>
            </tr>
          ))}
        </tbody>
      </Table>
    </div>
  );
}
