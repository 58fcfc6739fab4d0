"use client";
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import { type JSX, useEffect, useRef } from "react";
import { join } from "../../design/join.ts";
import { formatCount } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { depthOf } from "./thread-tree.ts";
import { type MarkKind, markGlyphs, type TurnMark, turnMarks } from "./turn-marks.ts";

const markColours: Record<MarkKind, string> = {
  failed: "text-failed",
  retry: "text-paused",
  cut: "text-paused",
  reset: "text-accent-text",
  hint: "text-[var(--origin-hint)]",
  note: "text-g7",
};

const saysNoCall = ({ kind }: TurnMark): boolean => kind === "cut" || kind === "retry";

/** Turns with what each cost; the bar is sampled tokens against the longest turn. */
export function Outline({
  turns,
  current,
  onSelect,
}: {
  turns: readonly TurnView[];
  current: number;
  onSelect(turn: number): void;
}): JSX.Element {
  const list = useRef<HTMLOListElement>(null);
  const most = turns.reduce((max, turn) => Math.max(max, turn.sampledTokens), 1);
  useEffect(() => {
    list.current?.querySelector(`[data-outline="${current}"]`)?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <nav aria-label="Turns" className="min-h-0 flex-1 overflow-auto">
      <div className="num flex h-7 items-center gap-2 px-3 text-xs text-g7">
        <span className="flex-1">Turn</span>
        <span className="w-12 text-right">tokens</span>
        <span className="w-14 text-right">sample</span>
      </div>
      <ol ref={list}>
        {turns.map((turn) => {
          const marks = turnMarks(turn).filter((mark) => mark.kind !== "note");
          return (
            <li key={turn.turn} data-outline={turn.turn}>
              <button
                type="button"
                aria-current={turn.turn === current ? "step" : undefined}
                onClick={() => onSelect(turn.turn)}
                style={{ paddingLeft: 12 + 10 * Math.min(4, depthOf(turn.thread)) }}
                className={join(
                  "flex h-7 w-full items-center gap-2 pr-3 text-left",
                  turn.turn === current ? "bg-accent-soft text-g9" : "hover:bg-g1",
                )}
              >
                <span className="num w-5 shrink-0 text-sm">{turn.turn}</span>
                <span className="mono min-w-0 flex-1 truncate text-xs text-g7">
                  {marks.map((mark) => (
                    <span key={mark.kind} title={mark.label} className={markColours[mark.kind]}>
                      {markGlyphs[mark.kind]}{" "}
                    </span>
                  ))}
                  {turn.calls.map((call) => call.name).join(", ") || (marks.some(saysNoCall) ? "" : "no call")}
                </span>
                <span className="relative w-12 text-right">
                  <span
                    aria-hidden="true"
                    className="absolute right-0 -bottom-0.5 h-0.5 bg-g5"
                    style={{ width: `${(turn.sampledTokens / most) * 100}%` }}
                  />
                  <span className="num text-xs">{formatCount(turn.sampledTokens)}</span>
                </span>
                <span className="num w-14 text-right text-xs text-g7">{formatDuration(turn.sampleMs)}</span>
              </button>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
