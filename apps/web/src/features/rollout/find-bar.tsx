"use client";
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import { type JSX, useDeferredValue, useMemo, useState } from "react";
import { IconButton } from "../../design/button.tsx";
import { Icon } from "../../design/icon.tsx";
import { join } from "../../design/join.ts";
import { formatCount } from "../../format/numbers.ts";
import { type Found, findInTurns } from "./find-in-turns.ts";

/** Find in the whole trajectory, in turns that the list does not hold too. Enter goes on, Shift+Enter back, Esc closes. */
export function FindBar({
  turns,
  onGo,
  onClose,
}: {
  turns: readonly TurnView[];
  onGo(turn: number): void;
  onClose(): void;
}): JSX.Element {
  const [text, setText] = useState("");
  const [at, setAt] = useState(-1);
  const asked = useDeferredValue(text);
  const { found, total } = useMemo(() => findInTurns(turns, asked), [turns, asked]);
  const go = (index: number) => {
    // Enter may come before the page has caught up with the last letter.
    const places = text === asked ? found : findInTurns(turns, text).found;
    const place = (index + places.length) % Math.max(1, places.length);
    const next = places[place];
    if (!next) return;
    setAt(place);
    onGo(next.turn);
  };
  return (
    <search className="shrink-0 border-b border-g3" aria-label="Find in this rollout">
      <div className="flex h-10 items-center gap-2 px-4">
        <Icon name="search" size={14} />
        <input
          // biome-ignore lint/a11y/noAutofocus: opened by a key to be typed into
          autoFocus
          aria-label="Find in this rollout"
          placeholder="Find in all turns"
          value={text}
          maxLength={200}
          onChange={(event) => {
            setText(event.target.value);
            setAt(-1);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") go(event.shiftKey ? at - 1 : at + 1);
            else if (event.key === "Escape") onClose();
            else return;
            event.preventDefault();
          }}
          className="min-w-0 flex-1 bg-transparent outline-none placeholder:text-g7"
        />
        <span className="figures text-sm text-g7" role="status">
          {text.trim() !== "" && (total === 0 ? "not found" : `${at < 0 ? "" : `${at + 1} of `}${formatCount(total)}`)}
        </span>
        <IconButton label="Close" onClick={onClose}>
          <Icon name="close" size={12} />
        </IconButton>
      </div>
      {found.length > 0 && (
        <ol className="max-h-[148px] overflow-auto border-t border-g2 py-1">
          {found.map((each, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a find is its place in the list
            <li key={index}>
              <button
                type="button"
                onClick={() => go(index)}
                className={join(
                  "flex h-6 w-full items-center gap-3 px-4 text-left",
                  index === at ? "bg-accent-soft" : "hover:bg-g1",
                )}
              >
                <Excerpt found={each} />
              </button>
            </li>
          ))}
          {total > found.length && (
            <li className="px-4 text-xs text-g7">{formatCount(total - found.length)} more; type more letters.</li>
          )}
        </ol>
      )}
    </search>
  );
}

function Excerpt({ found }: { found: Found }): JSX.Element {
  return (
    <>
      <span className="num w-14 shrink-0 text-xs text-g7">turn {found.turn}</span>
      <span className="w-24 shrink-0 truncate text-xs text-g7">{found.part}</span>
      <span className="mono min-w-0 truncate text-xs">
        {found.before}
        <mark className="bg-paused-soft text-paused">{found.match}</mark>
        {found.after}
      </span>
    </>
  );
}
