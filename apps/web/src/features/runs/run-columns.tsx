"use client";
import type { RunSummary } from "@rolldeck/contracts/api/runs";
import { createColumnHelper } from "@tanstack/react-table";
import Link from "next/link";
import { runColour } from "../../charts/run-colour.ts";
import { Sparkline } from "../../charts/sparkline.tsx";
import { Chip } from "../../design/chip.tsx";
import { StatusMark, statusLooks } from "../../design/status-mark.tsx";
import { TimeAgo, useNow } from "../../design/time-ago.tsx";
import { formatCount, formatExact, formatFraction, formatNumber } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";

declare module "@tanstack/react-table" {
  interface ColumnMeta<TData, TValue> {
    readonly width: number;
    readonly right?: boolean;
    /** Grows with the page. */
    readonly grow?: boolean;
  }
}
const column = createColumnHelper<RunSummary>();

function Took({ run }: { run: RunSummary }) {
  const now = useNow();
  if (!run.startedAt) return <>n/a</>;
  const end = run.endedAt ? Date.parse(run.endedAt) : now;
  return <>{formatDuration(Math.max(0, end - Date.parse(run.startedAt)))}</>;
}

/** A completed run needs no reason. */
const hasReason = (run: RunSummary): boolean => run.reason !== null && run.status !== "completed";

export const runColumns = [
  column.accessor("status", {
    header: "Status",
    meta: { width: 112 },
    cell: ({ row }) => <StatusMark status={row.original.status} withLabel />,
  }),
  column.accessor("name", {
    header: "Name",
    meta: { width: 192, grow: true },
    cell: ({ row: { original: run } }) => (
      <span className="flex min-w-0 items-center gap-2">
        <span aria-hidden="true" className="h-3 w-[3px] shrink-0 rounded-full" style={{ background: runColour(run) }} />
        <Link
          href={`/runs/${run.runId}`}
          tabIndex={-1}
          className="max-w-[62%] shrink-0 truncate font-medium hover:text-accent-text"
          title={run.name}
        >
          {run.name}
        </Link>
        {!hasReason(run) && (
          // Tags that do not fit wrap out of sight.
          <span className="flex h-5 min-w-0 flex-1 flex-wrap gap-1 overflow-hidden">
            {run.tags.map((tag) => (
              <Chip key={tag} title={`tag ${tag}`} className="max-w-[120px] shrink-0">
                <span className="truncate">{tag}</span>
              </Chip>
            ))}
          </span>
        )}
        {hasReason(run) && (
          <span
            className="min-w-0 truncate text-sm"
            title={run.reason ?? undefined}
            style={{ color: run.status === "failed" ? statusLooks.failed.colour : "var(--g7)" }}
          >
            {run.reason}
          </span>
        )}
      </span>
    ),
  }),
  column.accessor("model", { header: "Model", meta: { width: 96 } }),
  column.accessor((run) => run.taskSets.join(", "), { id: "taskSets", header: "Task", meta: { width: 88 } }),
  column.accessor("backend", { header: "Backend", meta: { width: 96 } }),
  column.accessor("step", {
    header: "Step",
    meta: { width: 100, right: true },
    cell: ({ row: { original: run } }) =>
      run.kind === "evaluate" ? (
        <span className="text-g7">evaluation</span>
      ) : (
        <span className="flex items-center justify-end gap-2">
          <span aria-hidden="true" className="h-1 w-8 overflow-hidden rounded-full bg-g3">
            <span
              className="block h-full bg-g7"
              style={{ width: `${Math.min(100, (run.step / Math.max(1, run.steps)) * 100)}%` }}
            />
          </span>
          <span className="num">
            {formatCount(run.step)}
            <span className="text-g7">/{formatCount(run.steps)}</span>
          </span>
        </span>
      ),
  }),
  column.accessor("reward", {
    header: "Reward",
    meta: { width: 144, right: true },
    cell: ({ row: { original: run } }) => (
      <span className="flex items-center justify-end gap-2">
        <Sparkline values={run.rewardSeries} colour={runColour(run)} />
        <span className="num w-12 text-right">{formatNumber(run.reward)}</span>
      </span>
    ),
  }),
  column.accessor("success", {
    header: "Success",
    meta: { width: 72, right: true },
    cell: ({ getValue }) => formatFraction(getValue()),
  }),
  column.accessor("logprobGap", {
    header: "Log-p gap",
    meta: { width: 84, right: true },
    cell: ({ getValue }) => formatNumber(getValue()),
  }),
  column.accessor("sampledTokens", {
    header: "Tokens",
    meta: { width: 76, right: true },
    cell: ({ getValue }) => <span title={`${formatExact(getValue())} sampled tokens`}>{formatCount(getValue())}</span>,
  }),
  column.display({
    id: "took",
    header: "Took",
    meta: { width: 100, right: true },
    cell: ({ row }) => <Took run={row.original} />,
  }),
  column.accessor("createdAt", {
    header: "Created",
    meta: { width: 88, right: true },
    cell: ({ getValue }) => <TimeAgo at={getValue()} />,
  }),
];
/** Columns that give way first where the page is narrow, unless someone asked for them. */
export const firstToHide: readonly string[] = ["backend", "model"];
export const sortable: Readonly<Record<string, "createdAt" | "name" | "reward">> = {
  name: "name",
  reward: "reward",
  createdAt: "createdAt",
};
