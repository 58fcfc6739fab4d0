"use client";
import type { RunSummary } from "@rolldeck/contracts/api/runs";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Popover } from "radix-ui";
import { type JSX, useDeferredValue, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { buttonClass } from "../../design/button.tsx";
import { Icon } from "../../design/icon.tsx";
import { join } from "../../design/join.ts";
import { StatusMark } from "../../design/status-mark.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import type { Labels, Strokes } from "./compared.ts";
import { StrokeMark } from "./run-name.tsx";

/** The compared runs, baseline first; each can be hidden, made baseline or taken out. */
export function RunPicker({
  runs,
  runIds,
  labels,
  strokes,
  hidden,
  onRuns,
  onHidden,
}: {
  runs: readonly RunSummary[];
  runIds: readonly string[];
  labels: Labels;
  strokes: Strokes;
  hidden: readonly string[];
  onRuns(runIds: string[]): void;
  onHidden(hidden: string[]): void;
}): JSX.Element {
  const status = new Map(runs.map((run) => [run.runId, run.status]));
  return (
    <ul aria-label="Compared runs" className="flex flex-wrap items-center gap-2">
      {runIds.map((runId, index) => {
        const off = hidden.includes(runId);
        const known = status.get(runId);
        return (
          <li
            key={runId}
            className={join("flex h-8 items-center gap-2 rounded-md border border-g4 pr-1 pl-2", off && "opacity-50")}
          >
            <StrokeMark stroke={strokes.get(runId)} />
            {known && <StatusMark status={known} />}
            <button
              type="button"
              aria-pressed={!off}
              title={off ? "Show its lines" : "Hide its lines"}
              onClick={() => onHidden(off ? hidden.filter((id) => id !== runId) : [...hidden, runId])}
              className="max-w-[200px] truncate"
            >
              {labels.get(runId) ?? runId}
            </button>
            {index === 0 ? (
              <span className="text-xs text-g7">baseline</span>
            ) : (
              <button
                type="button"
                className="text-xs text-g7 hover:text-g9 hover:underline"
                onClick={() => onRuns([runId, ...runIds.filter((id) => id !== runId)])}
              >
                make baseline
              </button>
            )}
            <button
              type="button"
              aria-label={`Take ${labels.get(runId) ?? runId} out`}
              onClick={() => onRuns(runIds.filter((id) => id !== runId))}
              className="rounded p-1 text-g7 hover:bg-g2 hover:text-g9"
            >
              <Icon name="close" size={12} />
            </button>
          </li>
        );
      })}
      <li>
        <AddRun runIds={runIds} onAdd={(runId) => onRuns([...runIds, runId])} />
      </li>
    </ul>
  );
}

function AddRun({ runIds, onAdd }: { runIds: readonly string[]; onAdd(runId: string): void }): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <Popover.Root open={open} onOpenChange={setOpen}>
      <Popover.Trigger className={buttonClass("plain")}>
        <Icon name="plus" size={14} />
        Add a run
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="start"
          sideOffset={4}
          aria-label="Add a run"
          className="z-50 w-[420px] rounded-md border border-g4 bg-g0 p-1 shadow-float"
        >
          <Candidates runIds={runIds} onAdd={onAdd} />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function Candidates({ runIds, onAdd }: { runIds: readonly string[]; onAdd(runId: string): void }): JSX.Element {
  const trpc = useTRPC();
  const [text, setText] = useState("");
  const query = useDeferredValue(text);
  const { data } = useQuery(
    trpc.runs.list.queryOptions({ query: query.slice(0, 200), limit: 30 }, { placeholderData: keepPreviousData }),
  );
  const left = data?.items.filter((run) => !runIds.includes(run.runId)) ?? [];
  return (
    <>
      <input
        aria-label="Find a run"
        placeholder="name, id, tag:x"
        value={text}
        maxLength={200}
        onChange={(event) => setText(event.target.value)}
        className="mb-1 h-8 w-full rounded bg-g1 px-2 outline-none placeholder:text-g7"
      />
      <ul className="max-h-[300px] overflow-auto">
        {left.map((run) => (
          <li key={run.runId}>
            <button
              type="button"
              onClick={() => onAdd(run.runId)}
              className="flex h-8 w-full items-center gap-2 rounded px-2 text-left hover:bg-g2"
            >
              <StatusMark status={run.status} />
              <span className="min-w-0 flex-1 truncate">{run.name}</span>
              <span className="num text-xs text-g7">
                <TimeAgo at={run.createdAt} />
              </span>
            </button>
          </li>
        ))}
        {left.length === 0 && <li className="px-2 py-1 text-g7">No other run matches.</li>}
      </ul>
    </>
  );
}
