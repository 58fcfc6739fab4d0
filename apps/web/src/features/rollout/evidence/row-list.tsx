"use client";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type JSX, type ReactNode, type Ref, useImperativeHandle, useRef } from "react";

export interface RowListHandle {
  to(index: number): void;
}

/** Rows of any number: only those in view are there. Heights are measured, so a row may open. */
export function RowList({
  label,
  count,
  rowHeight,
  handle,
  minWidth,
  children,
}: {
  label: string;
  count: number;
  /** Before a row is measured, px. */
  rowHeight: number;
  handle?: Ref<RowListHandle>;
  minWidth?: string;
  children(index: number): ReactNode;
}): JSX.Element {
  const scroller = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 20,
  });
  useImperativeHandle(handle, () => ({ to: (index) => virtual.scrollToIndex(index, { align: "center" }) }), [virtual]);
  return (
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
      tabIndex={0}
      aria-label={label}
      className="min-h-0 flex-1 overflow-auto"
    >
      <div className="relative" style={{ height: virtual.getTotalSize(), minWidth }}>
        {virtual.getVirtualItems().map((item) => (
          <div
            key={item.key}
            data-index={item.index}
            ref={virtual.measureElement}
            className="absolute inset-x-0"
            style={{ transform: `translateY(${item.start}px)` }}
          >
            {children(item.index)}
          </div>
        ))}
      </div>
    </section>
  );
}
