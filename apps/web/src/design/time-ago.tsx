"use client";
import { type JSX, useSyncExternalStore } from "react";
import { formatAgo, formatUtc } from "../format/times.ts";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | null = null;

function listen(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && timer) {
      clearInterval(timer);
      timer = null;
    }
  };
}

/** One clock for the whole page, once a second; 0 while rendering on the server. */
export const useNow = (): number =>
  useSyncExternalStore(
    listen,
    () => now,
    () => 0,
  );

export function TimeAgo({ at }: { at: string | null }): JSX.Element {
  const current = useNow();
  return (
    <time dateTime={at ?? undefined} title={formatUtc(at)} className="whitespace-nowrap">
      {formatAgo(at, current)}
    </time>
  );
}
