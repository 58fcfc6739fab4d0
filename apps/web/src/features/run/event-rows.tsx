"use client";
import type { RunEvent } from "@rolldeck/contracts/events";
import Link from "next/link";
import type { JSX } from "react";
import { join } from "../../design/join.ts";
import { formatClock, formatUtc } from "../../format/times.ts";
import { describeEvent } from "./describe-event.ts";

const marks = { info: "", warning: "▲", error: "▲" } as const;

/** One event on one 24 px line. */
export function EventRow({ event }: { event: RunEvent }): JSX.Element {
  const line = describeEvent(event.body);
  return (
    <div
      className={join(
        "flex h-6 items-center gap-3 px-1 text-sm whitespace-nowrap",
        line.level === "error" && "text-failed",
        line.level === "warning" && "text-paused",
      )}
    >
      <span className="num w-14 shrink-0 text-right text-xs text-g7">{event.seq}</span>
      <time className="num shrink-0 text-xs text-g7" dateTime={event.at} title={formatUtc(event.at)}>
        {formatClock(event.at)}
      </time>
      <span className="w-28 shrink-0 truncate text-xs text-g7">{event.body.type}</span>
      <span className="min-w-0 truncate" title={line.text}>
        {marks[line.level]} {line.text}
      </span>
      {line.rolloutId && (
        <Link
          href={`/runs/${event.runId}/t/${line.rolloutId}`}
          className="shrink-0 text-xs text-accent-text hover:underline"
        >
          open
        </Link>
      )}
    </div>
  );
}

export function EventRows({ events }: { events: readonly RunEvent[] }): JSX.Element {
  return (
    <div className="min-h-0 overflow-y-auto">
      {events.toReversed().map((event) => (
        <EventRow key={event.seq} event={event} />
      ))}
    </div>
  );
}
