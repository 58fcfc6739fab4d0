"use client";
import type { VisibilityState } from "@tanstack/react-table";
import { useRouter } from "next/navigation";
import { parseAsBoolean, parseAsString, parseAsStringLiteral, useQueryStates } from "nuqs";
import { type JSX, useCallback, useRef, useState } from "react";
import { z } from "zod";
import { useWidth } from "../../charts/use-width.ts";
import { Button, ButtonLink } from "../../design/button.tsx";
import { Icon } from "../../design/icon.tsx";
import { Kbd } from "../../design/kbd.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { formatCount } from "../../format/numbers.ts";
import { useKeys } from "../shell/keys.ts";
import { useCrumbs } from "../shell/page-header.ts";
import { useStored } from "../shell/stored.ts";
import { ColumnMenu } from "./column-menu.tsx";
import { NoMatch, NoRuns } from "./no-runs.tsx";
import { QueryBar } from "./query-bar.tsx";
import { firstToHide } from "./run-columns.tsx";
import { RunTable } from "./run-table.tsx";
import { useRunList } from "./use-run-list.ts";

/** Width in pixels at which every column has its place. */
const roomForAll = 1380;
const Hidden = z.record(z.string(), z.boolean());
function parseHidden(text: string): VisibilityState {
  try {
    return Hidden.parse(JSON.parse(text));
  } catch {
    // A preference we can't read counts as none.
    return {};
  }
}

export function RunsPage(): JSX.Element {
  const router = useRouter();
  const [state, setState] = useQueryStates({
    q: parseAsString.withDefault(""),
    sort: parseAsStringLiteral(["createdAt", "name", "reward"]).withDefault("createdAt"),
    desc: parseAsBoolean.withDefault(true),
  });
  const { list, runs, total, fresh, showFresh } = useRunList(state.q, { sort: state.sort, descending: state.desc });
  const [cursor, setCursor] = useState(-1);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [hiddenText, setHiddenText] = useStored("runs.columns", "{}");
  const [columnsOpen, setColumnsOpen] = useState(false);
  const [box, width] = useWidth<HTMLElement>();
  const narrow = width > 0 && width < roomForAll;
  const hidden: VisibilityState = {
    ...(narrow ? Object.fromEntries(firstToHide.map((column) => [column, false])) : {}),
    ...parseHidden(hiddenText),
  };
  const filter = useRef<HTMLInputElement>(null);
  const setQuery = useCallback((q: string) => void setState({ q: q || null }), [setState]);
  useCrumbs([{ label: "Runs", href: "/runs" }]);

  const at = runs[cursor];
  const pick = (runId: string) => {
    const next = new Set(picked);
    if (!next.delete(runId)) next.add(runId);
    setPicked(next);
  };
  const compare = () => picked.size > 0 && router.push(`/compare?runs=${[...picked].join(",")}`);
  useKeys("Runs", [
    { keys: "j", label: "Next run", run: () => setCursor(Math.min(runs.length - 1, cursor + 1)) },
    { keys: "k", label: "Previous run", run: () => setCursor(Math.max(0, cursor - 1)) },
    { keys: "x", label: "Pick for comparing", run: () => at && pick(at.runId) },
    { keys: "Enter", label: "Open", run: () => at && router.push(`/runs/${at.runId}`) },
    { keys: "c", label: "Compare the picked runs", run: compare },
    { keys: "n", label: "New run", run: () => router.push("/runs/new") },
    { keys: "r", label: "Relaunch with changes", run: () => at && router.push(`/runs/new?from=${at.runId}`) },
    { keys: "l", label: "Columns", run: () => setColumnsOpen(true) },
    { keys: "/", label: "Filter", run: () => filter.current?.focus() },
  ]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);

  return (
    <>
      <header ref={box} className="flex min-h-12 flex-wrap items-center gap-3 border-b border-g3 px-4 py-2">
        <h1 className="sr-only">Runs</h1>
        <QueryBar query={state.q} onQuery={setQuery} input={filter} />
        <span className="figures text-sm whitespace-nowrap text-g7">
          {total === null ? "" : `${formatCount(total)} ${total === 1 ? "run" : "runs"}`}
        </span>
        <ColumnMenu
          hidden={hidden}
          onHidden={(next) => setHiddenText(JSON.stringify(next))}
          open={columnsOpen}
          onOpenChange={setColumnsOpen}
        />
        <ButtonLink href="/runs/new" look="primary">
          <Icon name="plus" size={14} />
          New run
        </ButtonLink>
      </header>
      {list.error && (
        <div className="px-4 pt-3">
          <QueryError query={list} doing="load the runs" />
        </div>
      )}
      {fresh > 0 && (
        <button
          type="button"
          onClick={showFresh}
          className="h-8 border-b border-g3 bg-accent-soft text-sm font-medium text-accent-text hover:underline"
        >
          {fresh} new — show
        </button>
      )}
      {list.isPending ? (
        <div className="flex flex-col gap-2 p-4">
          {Array.from({ length: 8 }, (_, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: placeholders are alike
            <Skeleton key={index} className="h-6" />
          ))}
        </div>
      ) : runs.length === 0 && !list.error ? (
        state.q ? (
          <NoMatch query={state.q} onQuery={setQuery} />
        ) : (
          <NoRuns />
        )
      ) : (
        <RunTable
          runs={runs}
          cursor={cursor}
          onCursor={setCursor}
          picked={picked}
          onPick={pick}
          sort={{ sort: state.sort, descending: state.desc }}
          onSort={({ sort, descending }) => void setState({ sort, desc: descending })}
          hidden={hidden}
          onEnd={onEnd}
        />
      )}
      {picked.size > 0 && (
        <footer className="flex h-11 items-center gap-3 border-t border-g3 bg-g1 px-4">
          <span>
            {picked.size} {picked.size === 1 ? "run" : "runs"} picked
          </span>
          <Button onClick={compare} disabled={picked.size < 2}>
            Compare <Kbd>c</Kbd>
          </Button>
          <Button look="quiet" onClick={() => setPicked(new Set())}>
            Clear
          </Button>
        </footer>
      )}
    </>
  );
}
