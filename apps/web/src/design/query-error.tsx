import type { JSX } from "react";
import { ErrorBanner } from "./error-banner.tsx";

/** What a query says when it fails: what is shown stays below it, with its age, and it can be tried again. Nothing while it works. */
export function QueryError({
  query,
  doing,
}: {
  query: { readonly error: unknown; readonly dataUpdatedAt: number; refetch(): Promise<unknown> };
  /** "load the runs" */
  doing: string;
}): JSX.Element | null {
  if (!query.error) return null;
  return (
    <ErrorBanner
      error={query.error}
      doing={doing}
      shownSince={query.dataUpdatedAt}
      onRetry={() => void query.refetch()}
    />
  );
}
