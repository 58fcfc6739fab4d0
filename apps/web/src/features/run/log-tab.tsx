"use client";
/** The run's events, windowed, newest at the bottom; sticks to the bottom only while it is there. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { useVirtualizer } from "@tanstack/react-virtual";
import { parseAsBoolean, parseAsString, useQueryStates } from "nuqs";
import { type JSX, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "../../design/button.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Segmented } from "../../design/segmented.tsx";
import { downloadText } from "../../format/download.ts";
import { formatCount } from "../../format/numbers.ts";
import { useKeys } from "../shell/keys.ts";
import { describeEvent } from "./describe-event.ts";
import { EventRow } from "./event-rows.tsx";
import { useEventTail } from "./use-event-tail.ts";
import type { RunFeed } from "./use-run-feed.ts";

const rowHeight = 24;

export function LogTab({ run, feed }: { run: RunDetail; feed: RunFeed }): JSX.Element {
  const tail = useEventTail(run, feed);
  const [state, setState] = useQueryStates({
    filter: parseAsString.withDefault(""),
    turns: parseAsBoolean.withDefault(false),
  });
  const input = useRef<HTMLInputElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const [follow, setFollow] = useState(true);
  useKeys("Log", [{ keys: "/", label: "Filter the log", run: () => input.current?.focus() }]);
  const filter = useDeferredValue(state.filter.toLowerCase());
  const shown = useMemo(
    () =>
      tail.events.filter((event) => {
        const { type } = event.body;
        if (!state.turns && (type === "turn-sampled" || type === "tools-ended")) return false;
        return !filter || `${type} ${describeEvent(event.body).text}`.toLowerCase().includes(filter);
      }),
    [tail.events, filter, state.turns],
  );
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 20,
  });
  useEffect(() => {
    if (follow && shown.length > 0) virtual.scrollToIndex(shown.length - 1, { align: "end" });
  }, [follow, shown.length, virtual]);
  const save = () =>
    downloadText(
      `${run.runId}-events.jsonl`,
      "application/x-ndjson",
      shown.map((event) => JSON.stringify(event)).join("\n"),
    );
  return (
    <>
      <div className="flex items-center gap-3 px-4 py-2">
        <input
          ref={input}
          aria-label="Filter the log"
          placeholder="Filter by words"
          value={state.filter}
          maxLength={200}
          onChange={(event) => void setState({ filter: event.target.value || null })}
          className="h-7 w-[260px] rounded-md border border-g4 bg-transparent px-2 text-sm"
        />
        <Segmented
          label="Turns"
          options={[
            { value: "off", label: "Without turns" },
            { value: "on", label: "With turns" },
          ]}
          value={state.turns ? "on" : "off"}
          onChange={(value) => void setState({ turns: value === "on" })}
        />
        <span className="figures text-sm text-g7">
          {formatCount(shown.length)} of {formatCount(tail.events.length)} loaded, newest seq{" "}
          {formatCount(tail.events.at(-1)?.seq ?? run.head)}
        </span>
        <span className="flex-1" />
        {tail.from > 1 && tail.events.length > 0 && (
          <Button look="quiet" className="h-7" disabled={tail.loading} onClick={tail.loadEarlier}>
            Load earlier
          </Button>
        )}
        <Button look="quiet" className="h-7" onClick={save}>
          Save as JSONL
        </Button>
      </div>
      {tail.error !== null && (
        <div className="px-4">
          <ErrorBanner error={tail.error} doing="load the log" />
        </div>
      )}
      {shown.length === 0 && !tail.loading ? (
        <EmptyState title={tail.events.length === 0 ? "No events yet" : "No event matches the filter"} />
      ) : (
        <div
          ref={scroller}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
          tabIndex={0}
          role="log"
          aria-label="Events"
          aria-live="off"
          className="min-h-0 flex-1 overflow-auto border-t border-g3 px-3"
          onScroll={(event) => {
            const box = event.currentTarget;
            setFollow(box.scrollHeight - box.scrollTop - box.clientHeight < rowHeight * 2);
          }}
        >
          <div className="relative" style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map((item) => {
              const event = shown[item.index];
              return event ? (
                <div
                  key={event.seq}
                  className="absolute inset-x-0"
                  style={{ transform: `translateY(${item.start}px)`, height: rowHeight }}
                >
                  <EventRow event={event} />
                </div>
              ) : null;
            })}
          </div>
        </div>
      )}
    </>
  );
}
