"use client";
/** ⌘K: pages, the page's actions, and runs by name, id or tag. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { type JSX, type KeyboardEvent, useMemo, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Dialog } from "../../design/dialog.tsx";
import { join } from "../../design/join.ts";
import { StatusMark } from "../../design/status-mark.tsx";
import { usePage } from "./page-header.ts";

interface Entry {
  readonly key: string;
  readonly kind: string;
  readonly label: string;
  readonly mark?: JSX.Element;
  run(): void;
}

const pages = [
  { label: "Runs", href: "/runs" },
  { label: "New run", href: "/runs/new" },
  { label: "Compare runs", href: "/compare" },
  { label: "New comparison", href: "/comparisons/new" },
  { label: "Schedule", href: "/schedule" },
  { label: "Settings", href: "/settings" },
] as const;

function useEntries(text: string, enabled: boolean): Entry[] {
  const trpc = useTRPC();
  const router = useRouter();
  const { actions } = usePage();
  const runs = useQuery(
    trpc.runs.list.queryOptions(
      { query: text.slice(0, 200), limit: 8 },
      { enabled, placeholderData: keepPreviousData },
    ),
  );
  return useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (label: string) => words.every((word) => label.toLowerCase().includes(word));
    return [
      ...actions
        .filter((action) => matches(action.label))
        .map((action): Entry => ({ key: `a ${action.label}`, kind: "Action", label: action.label, run: action.run })),
      ...pages
        .filter((page) => matches(page.label))
        .map((page): Entry => ({ key: page.href, kind: "Page", label: page.label, run: () => router.push(page.href) })),
      ...(runs.data?.items ?? []).map(
        (run): Entry => ({
          key: run.runId,
          kind: "Run",
          label: run.name,
          mark: <StatusMark status={run.status} />,
          run: () => router.push(`/runs/${run.runId}`),
        }),
      ),
    ];
  }, [text, actions, router, runs.data]);
}

export function Palette({ open, onOpenChange }: { open: boolean; onOpenChange(open: boolean): void }): JSX.Element {
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Command palette" width={560} bare>
      {open && <PaletteBody close={() => onOpenChange(false)} />}
    </Dialog>
  );
}

function PaletteBody({ close }: { close(): void }): JSX.Element {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  // Not deferred: Enter takes what stands first for what was typed, not for what was typed a moment ago.
  const entries = useEntries(text, true);
  const current = Math.min(at, Math.max(0, entries.length - 1));
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    close();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(entries.length - 1, current + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, current - 1));
    else if (event.key === "Enter") choose(entries[current]);
    else return;
    event.preventDefault();
  };
  return (
    <div>
      <input
        // biome-ignore lint/a11y/noAutofocus: the palette opens to be typed into
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries[current] ? `palette-${current}` : undefined}
        aria-label="Find a run, a page or an action"
        placeholder="Find a run, a page or an action"
        value={text}
        maxLength={200}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
        className="h-11 w-full border-b border-g3 bg-transparent px-4 text-lg outline-none placeholder:text-g7"
      />
      <div id="palette-list" role="listbox" aria-label="Results" className="max-h-[360px] overflow-auto p-1">
        {entries.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the combobox above
          <div
            key={entry.key}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onMouseMove={() => setAt(index)}
            onClick={() => choose(entry)}
            className={join(
              "flex h-8 cursor-pointer items-center gap-2 rounded px-3",
              index === current && "bg-accent-soft",
            )}
          >
            <span className="w-14 text-sm text-g7">{entry.kind}</span>
            {entry.mark}
            <span className="truncate">{entry.label}</span>
          </div>
        ))}
        {entries.length === 0 && <p className="px-3 py-2 text-g7">Nothing matches.</p>}
      </div>
    </div>
  );
}
