"use client";
/** The frame around every page: left rail, top bar, palette and key sheet. */
import { useRouter } from "next/navigation";
import { type JSX, type ReactNode, useState } from "react";
import { TooltipProvider } from "../../design/tooltip.tsx";
import { KeySheet } from "./key-sheet.tsx";
import { useKeys } from "./keys.ts";
import { LeftRail } from "./left-rail.tsx";
import { Palette } from "./palette.tsx";
import { TopBar } from "./top-bar.tsx";

export function DeckShell({ children }: { children: ReactNode }): JSX.Element {
  const router = useRouter();
  const [palette, setPalette] = useState(false);
  const [sheet, setSheet] = useState(false);
  useKeys("Everywhere", [
    { keys: "mod+k", label: "Command palette", run: () => setPalette((open) => !open) },
    { keys: "?", label: "This sheet", run: () => setSheet(true) },
    { keys: "gr", label: "Go to runs", run: () => router.push("/runs") },
    { keys: "gc", label: "Go to compare", run: () => router.push("/compare") },
    { keys: "gs", label: "Go to settings", run: () => router.push("/settings") },
  ]);
  return (
    <TooltipProvider>
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:bg-g0 focus:p-2"
      >
        Skip to content
      </a>
      <div className="flex h-dvh">
        <LeftRail />
        <div className="flex min-w-0 flex-1 flex-col">
          <TopBar onPalette={() => setPalette(true)} onSheet={() => setSheet(true)} />
          <main id="content" className="flex min-h-0 flex-1 flex-col overflow-auto">
            {children}
          </main>
        </div>
      </div>
      <Palette open={palette} onOpenChange={setPalette} />
      <KeySheet open={sheet} onOpenChange={setSheet} />
    </TooltipProvider>
  );
}
