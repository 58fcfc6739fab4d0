import { NuqsAdapter } from "nuqs/adapters/next/app";
import { type JSX, type ReactNode, Suspense } from "react";
import { QueryProvider } from "../../api/query-provider.tsx";
import { LiveProvider } from "../../live/live-provider.tsx";
import { DeckShell } from "./deck-shell.tsx";

/** The frame with all that pages in it rely on: queries, address state, live events. */
export function DeckFrame({ children }: { children: ReactNode }): JSX.Element {
  return (
    <QueryProvider>
      <NuqsAdapter>
        <LiveProvider>
          <DeckShell>
            <Suspense>{children}</Suspense>
          </DeckShell>
        </LiveProvider>
      </NuqsAdapter>
    </QueryProvider>
  );
}
