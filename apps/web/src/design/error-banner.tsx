"use client";
import type { JSX } from "react";
import { problemOf } from "../api/problem.ts";
import { Button } from "./button.tsx";
import { CodeText } from "./code-text.tsx";
import { CopyText } from "./copy-text.tsx";
import { TimeAgo } from "./time-ago.tsx";

/** What happened, what to do, and the request's id; stale content stays below it. */
export function ErrorBanner({
  error,
  doing,
  shownSince = 0,
  onRetry,
}: {
  error: unknown;
  /** "load the runs" */
  doing: string;
  /** When what is shown below was read, milliseconds; 0 = nothing is. */
  shownSince?: number;
  onRetry?: () => void;
}): JSX.Element {
  const problem = problemOf(error);
  return (
    <div
      role="alert"
      className="flex flex-wrap items-center gap-x-4 gap-y-1 rounded-md bg-failed-soft px-3 py-2 text-g9"
    >
      <span className="font-medium text-failed">Could not {doing}</span>
      <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        <CodeText text={problem.detail} />
      </span>
      {shownSince > 0 && (
        <span className="text-sm text-g7">
          shown: as of <TimeAgo at={new Date(shownSince).toISOString()} />
        </span>
      )}
      {problem.requestId && (
        <span className="inline-flex items-center gap-1 text-sm text-g7">
          request <CopyText text={problem.requestId} />
        </span>
      )}
      {onRetry && (
        <Button small onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
