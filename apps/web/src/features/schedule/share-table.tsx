"use client";
/** Runs that hold or want something: priority, weight, and of each pool held of what they may hold, with who waits. */
import type { PoolInfo } from "@rolldeck/contracts/api/schedule";
import Link from "next/link";
import type { JSX } from "react";
import { runColour } from "../../charts/run-colour.ts";
import { StatusMark } from "../../design/status-mark.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { formatCount, formatNumber } from "../../format/numbers.ts";
import { poolWords } from "./pool-words.ts";

type Run = PoolInfo["runs"][number];

/** Highest priority first, as they are served. */
function runsOf(pools: readonly PoolInfo[]): Run[] {
  const runs = new Map<string, Run>();
  for (const pool of pools) for (const run of pool.runs) runs.set(run.runId, run);
  return [...runs.values()].sort((a, b) => b.priority - a.priority || b.weight - a.weight || a.ordinal - b.ordinal);
}

export function ShareTable({ pools }: { pools: readonly PoolInfo[] }): JSX.Element {
  return (
    <Table label="Shares of runs">
      <thead>
        <tr>
          <Th>Run</Th>
          <Th>Project</Th>
          <Th right title="Higher is served first">
            Priority
          </Th>
          <Th right title="Share of a pool among runs of one priority">
            Weight
          </Th>
          {pools.map(({ resource }) => (
            <Th
              key={resource}
              right
              title={`Held of what the run may hold now; + rollouts that wait. ${poolWords[resource].definition}`}
            >
              {poolWords[resource].label}
            </Th>
          ))}
        </tr>
      </thead>
      <tbody>
        {runsOf(pools).map((run) => (
          <tr key={run.runId} data-run={run.runId} className="hover:bg-g1">
            <Td>
              <span className="flex max-w-[320px] items-center gap-2">
                <span
                  aria-hidden="true"
                  className="size-2.5 shrink-0 rounded-[2px]"
                  style={{ background: runColour(run) }}
                />
                <StatusMark status={run.status} />
                <Link href={`/runs/${run.runId}?tab=schedule`} className="truncate hover:underline" title={run.name}>
                  {run.name}
                </Link>
              </span>
            </Td>
            <Td className="text-g8">{run.project}</Td>
            <Td right>{formatCount(run.priority)}</Td>
            <Td right>{formatNumber(run.weight)}</Td>
            {pools.map((pool) => (
              <Held key={pool.resource} run={pool.runs.find(({ runId }) => runId === run.runId)} />
            ))}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Held({ run }: { run: Run | undefined }): JSX.Element {
  if (!run)
    return (
      <Td right className="text-g7">
        –
      </Td>
    );
  return (
    <Td right>
      {formatCount(run.held)}
      {run.granted !== null && <span className="text-g7"> of {formatCount(run.granted)}</span>}
      {run.waiting > 0 && <span className="ml-1.5 text-paused">+{formatCount(run.waiting)}</span>}
    </Td>
  );
}
