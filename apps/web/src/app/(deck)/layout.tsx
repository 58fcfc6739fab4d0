import { NuqsAdapter } from "nuqs/adapters/next/app";
import { type JSX, type ReactNode, Suspense } from "react";
import { QueryProvider } from "../../api/query-provider.tsx";
import { DeckShell } from "../../features/shell/deck-shell.tsx";
import { LiveProvider } from "../../live/live-provider.tsx";

export default function DeckLayout({ children }: { children: ReactNode }): JSX.Element {
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
