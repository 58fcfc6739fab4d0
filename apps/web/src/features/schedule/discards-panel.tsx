"use client";
/** Rollouts of a run that were left out of training, by task and length; nothing while there are none. */
import { type DiscardRow, discardReasonNames, discardReasons } from "@rolldeck/contracts/api/discards";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { formatCount, formatFraction } from "../../format/numbers.ts";

export function DiscardsPanel({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element | null {
  const trpc = useTRPC();
  const query = useQuery(
    trpc.schedule.discards.queryOptions(
      { runId: run.runId },
      { enabled: !frozen && run.kind === "train", refetchInterval: run.endedAt === null ? 10_000 : false },
    ),
  );
  const rows = query.data?.rows ?? [];
  if (query.error)
    return <ErrorBanner error={query.error} doing="count what was left out" onRetry={() => void query.refetch()} />;
  if (rows.every((row) => leftOut(row) === 0)) return null;
  return (
    <section aria-label="Left out of training" className="flex flex-col gap-1.5">
      <h2 className="font-semibold">Left out of training</h2>
      <p className="text-sm text-g7">
        Settled rollouts of all train steps. Where long ones are left out more often than short ones, the policy learns
        less of what takes long.
      </p>
      <Table label="Left out of training">
        <thead>
          <tr>
            <Th>Task</Th>
            <Th right title="Turns of the attempt that counts">
              Turns
            </Th>
            <Th right>Rollouts</Th>
            <Th right>Left out</Th>
            {discardReasonNames.map((why) => (
              <Th key={why} right title={discardReasons[why].definition}>
                {capital(discardReasons[why].label)}
              </Th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.task} ${row.fromTurns}`} className="hover:bg-g1">
              <Td>{row.task}</Td>
              <Td right>{turnsText(row.fromTurns)}</Td>
              <Td right>{formatCount(row.rollouts)}</Td>
              <Td right>{formatFraction(leftOut(row) / row.rollouts)}</Td>
              {discardReasonNames.map((why) => (
                <Td key={why} right className={row.discarded[why] === 0 ? "text-g7" : ""}>
                  {formatCount(row.discarded[why])}
                </Td>
              ))}
            </tr>
          ))}
        </tbody>
      </Table>
    </section>
  );
}

const leftOut = ({ discarded }: DiscardRow): number => discardReasonNames.reduce((sum, why) => sum + discarded[why], 0);
const turnsText = (from: number): string => (from < 2 ? String(from) : `${from}–${2 * from - 1}`);
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
