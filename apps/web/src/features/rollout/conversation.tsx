"use client";
/** The centre pane: turns as text or as tokens, windowed; scrolls to what is chosen, follows a live rollout at its end. */
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type JSX, type MouseEvent, useEffect, useImperativeHandle, useMemo, useRef, useState } from "react";
import { ContextChange } from "./context-change.tsx";
import {
  type ConversationRow,
  formatTokenRange,
  rowOfToken,
  rowOfTurn,
  textRows,
  tokenRows,
} from "./conversation-rows.ts";
import type { SubAgent } from "./thread-tree.ts";
import { TokenChunk } from "./token-chunk.tsx";
import type { TokenMode } from "./token-colour.ts";
import { TokenLegend } from "./token-legend.tsx";
import type { Token, TokenStore } from "./token-store.ts";
import { TokenStrip } from "./token-strip.tsx";
import { TokenTooltip } from "./token-tooltip.tsx";
import { TurnBlock } from "./turn-block.tsx";
import { TurnHead } from "./turn-head.tsx";

export interface ConversationHandle {
  toTurn(turn: number): void;
  toToken(token: number): void;
}

export function Conversation({
  turns,
  store,
  showTokens,
  mode,
  largestAdvantage,
  current,
  onCurrent,
  onGo,
  agents,
  artifactHref,
  collapsed,
  selection,
  onSelection,
  live,
  handle,
}: {
  turns: readonly TurnView[];
  store: TokenStore;
  showTokens: boolean;
  mode: TokenMode;
  largestAdvantage: number;
  current: number;
  /** Marks the turn that is read. */
  onCurrent(turn: number): void;
  /** Brings a turn into view. */
  onGo(turn: number): void;
  agents: ReadonlyMap<string, SubAgent>;
  artifactHref(turn: number, index: number, name: string): string;
  collapsed: boolean;
  selection: { readonly start: number; readonly end: number } | null;
  onSelection(range: string): void;
  live: boolean;
  handle: React.RefObject<ConversationHandle | null>;
}): JSX.Element {
  const scroller = useRef<HTMLElement>(null);
  const atEnd = useRef(false);
  const [hover, setHover] = useState<{ readonly token: Token; readonly x: number; readonly y: number } | null>(null);
  const rows = useMemo(
    () => (showTokens ? tokenRows(turns, store.total) : textRows(turns)),
    [showTokens, turns, store.total],
  );
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    getItemKey: (index) => `${showTokens}${rows[index]?.key ?? index}`,
    estimateSize: (index) => {
      const row = rows[index];
      if (row?.kind === "turn") return collapsed ? 33 : 220;
      if (row?.kind === "chunk") return 24 * Math.ceil((row.end - row.start) / 90);
      return 32;
    },
    overscan: 6,
  });
  useImperativeHandle(
    handle,
    () => ({
      toTurn: (turn) => {
        const row = rowOfTurn(rows, turn);
        if (row >= 0) virtual.scrollToIndex(row, { align: "start" });
      },
      toToken: (token) => {
        const row = rowOfToken(rows, token);
        if (row >= 0) virtual.scrollToIndex(row, { align: "center" });
      },
    }),
    [rows, virtual],
  );
  useEffect(() => {
    if (live && atEnd.current && rows.length > 0) virtual.scrollToIndex(rows.length - 1, { align: "end" });
  }, [live, rows.length, virtual]);

  const items = virtual.getVirtualItems();
  const view = useMemo(() => tokensInView(rows, items, scroller.current), [rows, items]);
  const tokenUnder = (event: MouseEvent): Token | null => {
    const span = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-token]") : null;
    return span ? store.at(Number(span.dataset.token)) : null;
  };
  return (
    <>
      {showTokens && <TokenLegend mode={mode} />}
      {showTokens && (
        <TokenStrip
          store={store}
          mode={mode}
          largestAdvantage={largestAdvantage}
          view={view}
          onPick={(token) => {
            const row = rowOfToken(rows, token);
            if (row >= 0) virtual.scrollToIndex(row, { align: "start" });
          }}
        />
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: tokens are reached by the strip's keys and by links; a click only marks one */}
      <section
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
        tabIndex={0}
        aria-label="Conversation"
        className="min-h-0 flex-1 overflow-auto"
        onScroll={(event) => {
          const box = event.currentTarget;
          atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
        }}
        onMouseMove={(event) => {
          const token = showTokens ? tokenUnder(event) : null;
          setHover(token ? { token, x: event.clientX, y: event.clientY } : null);
        }}
        onMouseLeave={() => setHover(null)}
        onClick={(event) => {
          const token = showTokens ? tokenUnder(event) : null;
          if (!token) return;
          const from = event.shiftKey && selection ? selection.start : token.index;
          onSelection(formatTokenRange(Math.min(from, token.index), Math.max(from, token.index)));
        }}
      >
        <div className="relative" style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => {
            const row = rows[item.index];
            if (!row) return null;
            return (
              <div
                key={item.key}
                data-index={item.index}
                ref={virtual.measureElement}
                className="absolute inset-x-0"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                {row.kind === "turn" && (
                  <TurnBlock
                    turn={row.turn}
                    current={row.turn.turn === current}
                    collapsed={collapsed}
                    agents={agents}
                    artifactHref={artifactHref}
                    onSelect={onCurrent}
                    onGo={onGo}
                  />
                )}
                {row.kind === "head" && (
                  // biome-ignore lint/a11y/useKeyWithClickEvents: j and k choose turns by keyboard
                  // biome-ignore lint/a11y/noStaticElementInteractions: a click only marks the turn that is read
                  <div onClick={() => onCurrent(row.turn.turn)} className="pb-1.5">
                    <TurnHead turn={row.turn} current={row.turn.turn === current} onGo={onGo} />
                  </div>
                )}
                {row.kind === "reset" && row.turn.contextChange && (
                  <div className="px-4 pb-2">
                    <ContextChange change={row.turn.contextChange} />
                  </div>
                )}
                {row.kind === "after" && (
                  <div className="border-t border-g3 bg-g1 px-4 py-1 text-xs text-g7">After the last turn</div>
                )}
                {row.kind === "chunk" && (
                  <TokenChunk
                    store={store}
                    start={row.start}
                    end={row.end}
                    mode={mode}
                    largestAdvantage={largestAdvantage}
                    {...selectionIn(selection, row.start, row.end)}
                  />
                )}
              </div>
            );
          })}
        </div>
      </section>
      {hover && <TokenTooltip token={hover.token} x={hover.x} y={hover.y} />}
    </>
  );
}

function selectionIn(selection: { readonly start: number; readonly end: number } | null, start: number, end: number) {
  if (!selection || selection.end < start || selection.start >= end) return { selectedFrom: -1, selectedTo: -1 };
  return { selectedFrom: Math.max(start, selection.start), selectedTo: Math.min(end - 1, selection.end) };
}

function tokensInView(
  rows: readonly ConversationRow[],
  items: readonly { readonly index: number; readonly start: number; readonly end: number }[],
  box: HTMLElement | null,
): { readonly start: number; readonly end: number } | null {
  const top = box?.scrollTop ?? 0;
  const bottom = top + (box?.clientHeight ?? 0);
  let start: number | null = null;
  let end = 0;
  for (const item of items) {
    const row = rows[item.index];
    if (row?.kind !== "chunk" || item.end < top || item.start > bottom) continue;
    start ??= row.start;
    end = row.end;
  }
  return start === null ? null : { start, end };
}
