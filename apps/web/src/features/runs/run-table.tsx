// biome-ignore-all lint/a11y/useSemanticElements: rows are windowed and placed by hand, which table elements can't be
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows' links, boxes and sort buttons take the focus
"use client";
/** The rows: windowed, 32 px each, one cursor row moved by j/k, check boxes for comparing. */
import type { RunSummary } from "@rolldeck/contracts/api/runs";
import { flexRender, getCoreRowModel, useReactTable, type VisibilityState } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRouter } from "next/navigation";
import { type JSX, useEffect, useRef } from "react";
import { join } from "../../design/join.ts";
import { runColumns, sortable } from "./run-columns.tsx";
import type { RunSort } from "./use-run-list.ts";

const rowHeight = 32;

export function RunTable({
  runs,
  cursor,
  onCursor,
  picked,
  onPick,
  sort,
  onSort,
  hidden,
  onEnd,
}: {
  runs: RunSummary[];
  cursor: number;
  onCursor(index: number): void;
  picked: ReadonlySet<string>;
  onPick(runId: string): void;
  sort: RunSort;
  onSort(sort: RunSort): void;
  hidden: VisibilityState;
  /** Called when the last row comes into view. */
  onEnd(): void;
}): JSX.Element {
  const router = useRouter();
  const scroller = useRef<HTMLDivElement>(null);
  const table = useReactTable({
    data: runs,
    columns: runColumns,
    state: { columnVisibility: hidden },
    getCoreRowModel: getCoreRowModel(),
    getRowId: (run) => run.runId,
    manualSorting: true,
  });
  const rows = table.getRowModel().rows;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollPaddingStart: rowHeight,
  });
  const shown = virtual.getVirtualItems();
  const lastShown = shown.at(-1)?.index ?? -1;
  useEffect(() => {
    if (rows.length > 0 && lastShown >= rows.length - 10) onEnd();
  }, [lastShown, rows.length, onEnd]);
  useEffect(() => {
    if (cursor >= 0 && cursor < rows.length) virtual.scrollToIndex(cursor);
  }, [cursor, rows.length, virtual]);
  const columns = table.getVisibleLeafColumns();
  const template = `32px ${columns
    .map(({ columnDef: { meta } }) => (meta?.grow ? `minmax(${meta.width}px, 1fr)` : `${meta?.width ?? 100}px`))
    .join(" ")}`;
  const minWidth = columns.reduce((sum, each) => sum + (each.columnDef.meta?.width ?? 100), 64);

  return (
    <div ref={scroller} className="min-h-0 flex-1 overflow-auto">
      <div
        role="table"
        aria-label="Runs"
        aria-rowcount={rows.length + 1}
        style={{ minWidth, height: virtual.getTotalSize() + rowHeight }}
        className="relative"
      >
        <div
          role="row"
          aria-rowindex={1}
          className="sticky top-0 z-10 grid border-b border-g3 bg-g0 px-2 text-sm text-g7"
          style={{ gridTemplateColumns: template, height: rowHeight }}
        >
          <span role="columnheader" aria-label="Picked for comparing" />
          {columns.map((each) => {
            const name = sortable[each.id];
            const active = name === sort.sort;
            const right = each.columnDef.meta?.right;
            const title = String(each.columnDef.header);
            return (
              <span
                role="columnheader"
                key={each.id}
                aria-sort={active ? (sort.descending ? "descending" : "ascending") : undefined}
                className={join("flex items-center px-2 font-medium", right && "justify-end")}
              >
                {name ? (
                  <button
                    type="button"
                    className={join("hover:text-g9", active && "text-g9")}
                    onClick={() => onSort({ sort: name, descending: active ? !sort.descending : name !== "name" })}
                  >
                    {title}
                    {active && (sort.descending ? " ↓" : " ↑")}
                  </button>
                ) : (
                  title
                )}
              </span>
            );
          })}
        </div>
        {shown.map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          const run = row.original;
          const here = item.index === cursor;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: j, k, x and Enter work on the row (see the key sheet); its link is focusable
            <div
              role="row"
              key={row.id}
              aria-rowindex={item.index + 2}
              aria-selected={picked.has(run.runId)}
              data-run={run.runId}
              onClick={(event) => {
                onCursor(item.index);
                if (!(event.target instanceof Element && event.target.closest("a, input, button")))
                  router.push(`/runs/${run.runId}`);
              }}
              className={join(
                "absolute inset-x-0 top-0 grid cursor-pointer items-center border-b border-g2 px-2",
                here ? "bg-g2 shadow-[inset_2px_0_0_var(--accent)]" : "hover:bg-g1",
                picked.has(run.runId) && "bg-accent-soft",
              )}
              style={{
                gridTemplateColumns: template,
                height: rowHeight,
                transform: `translateY(${item.start + rowHeight}px)`,
              }}
            >
              <span role="cell" className="flex justify-center">
                <input
                  type="checkbox"
                  aria-label={`Pick ${run.name} for comparing`}
                  checked={picked.has(run.runId)}
                  onChange={() => onPick(run.runId)}
                  className="size-3.5 accent-accent"
                />
              </span>
              {row.getVisibleCells().map((cell) => (
                <span
                  role="cell"
                  key={cell.id}
                  className={join(
                    "min-w-0 truncate px-2",
                    cell.column.columnDef.meta?.right ? "num text-right text-sm" : "",
                  )}
                >
                  {flexRender(cell.column.columnDef.cell, cell.getContext())}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}
