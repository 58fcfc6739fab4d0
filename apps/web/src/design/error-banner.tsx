"use client";
import type { JSX } from "react";
import { problemOf } from "../api/problem.ts";
import { Button } from "./button.tsx";
import { CopyText } from "./copy-text.tsx";

/** What happened, what to do, and the request's id; stale content stays below it. */
export function ErrorBanner({
  error,
  doing,
  onRetry,
}: {
  error: unknown;
  /** "load the runs" */
  doing: string;
  onRetry?: () => void;
}): JSX.Element {
  const problem = problemOf(error);
  return (
    <div
      role="alert"
      className="flex flex-wrap items-center gap-x-4 gap-y-1 rounded-md bg-failed-soft px-3 py-2 text-g9"
    >
      <span className="font-medium text-failed">Could not {doing}</span>
      <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">{problem.detail}</span>
      {problem.requestId && (
        <span className="inline-flex items-center gap-1 text-sm text-g7">
          request <CopyText text={problem.requestId} />
        </span>
      )}
      {onRetry && (
        <Button className="h-6 px-2" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
