"use client";
/** Before the first step: what is being made ready, how far it is, and the newest events; instead of blank charts. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { type BootPhase, bootPhases } from "@rolldeck/contracts/events";
import type { JSX } from "react";
import { formatBytes, formatCount, formatNumber } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { EventRows } from "./event-rows.tsx";
import { useEventTail } from "./use-event-tail.ts";
import type { RunFeed } from "./use-run-feed.ts";

const phases: Record<BootPhase, string> = {
  "waiting-for-worker": "Wait for a GPU worker",
  environment: "Install its Python environment",
  "model-server": "Start the model server",
  "create-model": "Create the model",
  "warm-start": "Warm start on demonstrations",
  "first-version": "Serve the first version",
  ready: "Sample the first step",
};

const amount = (value: number, unit: string | null): string =>
  unit === "bytes" ? formatBytes(value) : unit === "steps" || unit === null ? formatCount(value) : formatNumber(value);

export function BootPanel({ run, feed }: { run: RunDetail; feed: RunFeed }): JSX.Element {
  const tail = useEventTail(run, feed);
  const current = run.boot ? bootPhases.indexOf(run.boot.phase) : -1;
  return (
    <div className="grid min-h-0 flex-1 grid-cols-[minmax(340px,440px)_minmax(0,1fr)] gap-6 p-4 max-md:block max-md:overflow-auto">
      <section aria-label="Getting ready">
        <h2 className="mb-2 text-lg font-semibold">Getting ready</h2>
        <ol>
          {bootPhases.map((phase, index) => (
            <Phase
              key={phase}
              label={phases[phase]}
              state={index < current ? "done" : index === current ? "current" : "open"}
              boot={index === current ? run.boot : null}
            />
          ))}
        </ol>
        {!run.boot && <p className="text-g7">Queued. The first word comes when a worker takes the run.</p>}
      </section>
      <section aria-label="Newest events" className="flex min-h-0 min-w-0 flex-col border-l border-g3 pl-6">
        <h2 className="mb-2 text-lg font-semibold">Newest events</h2>
        <EventRows events={tail.events.slice(-40)} />
        {tail.events.length === 0 && <p className="text-g7">None yet.</p>}
      </section>
    </div>
  );
}

function Phase({
  label,
  state,
  boot,
}: {
  label: string;
  state: "done" | "current" | "open";
  boot: RunDetail["boot"];
}): JSX.Element {
  const share = boot?.done !== null && boot?.total ? Math.min(1, (boot.done ?? 0) / boot.total) : null;
  return (
    <li className="flex gap-3 py-1">
      <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true" className="mt-1 shrink-0">
        {state === "done" && <circle cx="6" cy="6" r="5" fill="var(--status-done)" />}
        {state === "open" && <circle cx="6" cy="6" r="4.25" fill="none" stroke="var(--g5)" strokeWidth="1.5" />}
        {state === "current" && (
          <g className="turning">
            <circle cx="6" cy="6" r="4.25" fill="none" stroke="var(--status-running)" strokeWidth="1.5" />
            <path d="M6 1.75a4.25 4.25 0 010 8.5z" fill="var(--status-running)" />
          </g>
        )}
      </svg>
      <div className="min-w-0 flex-1">
        <div className={state === "open" ? "text-g7" : state === "current" ? "font-medium" : "text-g8"}>
          {label}
          <span className="sr-only">
            {state === "done" ? ", done" : state === "current" ? ", going on" : ", to come"}
          </span>
        </div>
        {boot && (
          <div className="mt-1 mb-2 flex flex-col gap-1.5">
            <p className="text-sm text-g8 [overflow-wrap:anywhere]">{boot.message}</p>
            <progress
              aria-label={label}
              {...(share === null ? {} : { value: share })}
              max={1}
              className="h-1.5 w-full overflow-hidden rounded-full [&::-webkit-progress-bar]:bg-g3 [&::-webkit-progress-value]:bg-running"
            />
            <p className="figures flex justify-between text-sm text-g7">
              <span>
                {boot.done !== null &&
                  `${amount(boot.done, boot.unit)}${boot.total === null ? "" : ` of ${amount(boot.total, boot.unit)}`}${
                    boot.unit && boot.unit !== "bytes" ? ` ${boot.unit}` : ""
                  }`}
              </span>
              {boot.elapsedMs >= 1000 && <span>{formatDuration(boot.elapsedMs)}</span>}
            </p>
          </div>
        )}
      </div>
    </li>
  );
}
