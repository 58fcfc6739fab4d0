"use client";
import type { JSX } from "react";
import { ErrorBanner } from "../../design/error-banner.tsx";

export default function PageError({ error, reset }: { error: Error; reset: () => void }): JSX.Element {
  return (
    <div className="p-4">
      <ErrorBanner error={error} doing="show this page" onRetry={reset} />
    </div>
  );
}
