// biome-ignore-all lint/a11y/useSemanticElements: rows are windowed and placed by hand, which table elements can't be
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows' links, boxes and sort buttons take the focus
"use client";
/** The rows: windowed, 32 px each, one cursor row moved by j/k, check boxes for comparing. */
import type { RunSummary } from "@rolldeck/contracts/api/runs";
import {
  type Column,
  flexRender,
  getCoreRowModel,
  type Row,
  useReactTable,
  type VisibilityState,
} from "@tanstack/react-table";
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
        <RunTableHead columns={columns} template={template} sort={sort} onSort={onSort} />
        {shown.map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          return (
            <RunRow
              key={row.id}
              row={row}
              index={item.index}
              top={item.start + rowHeight}
              template={template}
              here={item.index === cursor}
              picked={picked.has(row.original.runId)}
              onCursor={onCursor}
              onPick={onPick}
            />
          );
        })}
      </div>
    </div>
  );
}

function RunRow({
  row,
  index,
  top,
  template,
  here,
  picked,
  onCursor,
  onPick,
}: {
  row: Row<RunSummary>;
  index: number;
  /** Pixels from the top of the table. */
  top: number;
  template: string;
  here: boolean;
  picked: boolean;
  onCursor(index: number): void;
  onPick(runId: string): void;
}): JSX.Element {
  const router = useRouter();
  const run = row.original;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: j, k, x and Enter work on the row (see the key sheet); its link is focusable
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={picked}
      data-run={run.runId}
      onClick={(event) => {
        onCursor(index);
        if (!(event.target instanceof Element && event.target.closest("a, input, button")))
          router.push(`/runs/${run.runId}`);
      }}
      className={join(
        "absolute inset-x-0 top-0 grid cursor-pointer items-center border-b border-g2 px-2",
        here ? "bg-g2 shadow-[inset_2px_0_0_var(--accent)]" : "hover:bg-g1",
        picked && "bg-accent-soft",
      )}
      style={{
        gridTemplateColumns: template,
        height: rowHeight,
        transform: `translateY(${top}px)`,
      }}
    >
      <span role="cell" className="flex justify-center">
        <input
          type="checkbox"
          aria-label={`Pick ${run.name} for comparing`}
          checked={picked}
          onChange={() => onPick(run.runId)}
          className="size-3.5 accent-accent"
        />
      </span>
      {row.getVisibleCells().map((cell) => (
        <span
          role="cell"
          key={cell.id}
          className={join("min-w-0 truncate px-2", cell.column.columnDef.meta?.right ? "num text-right text-sm" : "")}
        >
          {flexRender(cell.column.columnDef.cell, cell.getContext())}
        </span>
      ))}
    </div>
  );
}

function RunTableHead({
  columns,
  template,
  sort,
  onSort,
}: {
  columns: readonly Column<RunSummary>[];
  template: string;
  sort: RunSort;
  onSort(sort: RunSort): void;
}): JSX.Element {
  return (
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
  );
}
