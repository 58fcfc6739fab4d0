"use client";
/** A model server that someone else runs and that does not answer: what a run waits for, why, and for how long yet. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { JSX } from "react";
import { useNow } from "../../design/time-ago.tsx";
import { visibleText } from "../../design/visible-text.ts";
import { formatCount, formatNumber } from "../../format/numbers.ts";
import { formatDuration, formatUtc } from "../../format/times.ts";

export function WaitingBanner({ run }: { run: Pick<RunDetail, "waitingFor"> }): JSX.Element | null {
  const now = useNow();
  const { waitingFor } = run;
  if (waitingFor === null) return null;
  const { address, reason, since, tries, limitMinutes } = waitingFor;
  return (
    <p
      role="status"
      className="mx-4 mt-3 shrink-0 rounded-md bg-paused-soft px-3 py-2 text-sm text-paused [overflow-wrap:anywhere]"
    >
      Waiting for <code className="mono">{visibleText(address)}</code>:{" "}
      <strong className="font-semibold">{visibleText(reason)}</strong>, since{" "}
      <time dateTime={since} title={formatUtc(since)} className="num">
        {formatDuration(Math.max(0, now - Date.parse(since)))}
      </time>
      , try <span className="num">{formatCount(tries)}</span>. It goes on by itself when the server answers, and fails
      after <span className="num">{formatNumber(limitMinutes)}</span> min without an answer (backend.awayMinutes).
    </p>
  );
}
