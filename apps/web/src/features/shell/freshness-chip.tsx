"use client";
import type { JSX } from "react";
import { join } from "../../design/join.ts";
import { useNow } from "../../design/time-ago.tsx";
import { thinSpace } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { useConnectionState } from "../../live/live-provider.tsx";

const staleAfterMs = 10_000;

/** "live · 1.2 s ago"; amber and *stale* when nothing was heard for ten seconds or the connection is down. */
export function FreshnessChip(): JSX.Element {
  const connection = useConnectionState();
  const now = useNow();
  const age = connection.lastMessageAt === null ? null : Math.max(0, now - connection.lastMessageAt);
  const never = connection.lastMessageAt === null;
  const stale = !never && (!connection.connected || (age !== null && age > staleAfterMs));
  const ago =
    age === null
      ? ""
      : ` · ${age < staleAfterMs ? `${(age / 1000).toFixed(1)}${thinSpace}s` : formatDuration(age)} ago`;
  const text = never ? "connecting" : `${stale ? "stale" : "live"}${ago}`;
  return (
    <span
      role="status"
      aria-live="off"
      title={
        stale
          ? "Live updates stopped; the page shows what it last heard and goes on by itself."
          : "Connected. The age is that of the last word from the server."
      }
      className={join(
        "num inline-flex h-5 items-center gap-1.5 rounded px-1.5 text-xs whitespace-nowrap",
        stale ? "bg-paused-soft text-paused" : "text-g7",
      )}
    >
      <svg width="8" height="8" viewBox="0 0 8 8" aria-hidden="true">
        {stale ? (
          <path d="M1 1h2v6H1zM5 1h2v6H5z" fill="currentColor" />
        ) : (
          <circle
            cx="4"
            cy="4"
            r="3"
            fill={never ? "none" : "var(--status-done)"}
            stroke="currentColor"
            strokeWidth={never ? 1.5 : 0}
          />
        )}
      </svg>
      {text}
    </span>
  );
}
