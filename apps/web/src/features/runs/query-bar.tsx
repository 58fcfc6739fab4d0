"use client";
import { type JSX, type Ref, useEffect, useState } from "react";
import { Icon } from "../../design/icon.tsx";
import { join } from "../../design/join.ts";
import { Kbd } from "../../design/kbd.tsx";
import { hasTerm, withTerm } from "./run-query.ts";

const quick = [
  { label: "Running", term: "running" },
  { label: "Completed", term: "completed" },
  { label: "Failed", term: "failed" },
  { label: "Stopped", term: "stopped" },
] as const;
const settleMs = 250;

/** One text is the filter; chips edit that text. The URL gets it once typing pauses. */
export function QueryBar({
  query,
  onQuery,
  input,
}: {
  query: string;
  onQuery(query: string): void;
  input: Ref<HTMLInputElement>;
}): JSX.Element {
  const [text, setText] = useState(query);
  const [from, setFrom] = useState(query);
  if (from !== query) {
    setFrom(query);
    setText(query);
  }
  useEffect(() => {
    if (text === query) return;
    const timer = setTimeout(() => onQuery(text), settleMs);
    return () => clearTimeout(timer);
  }, [text, query, onQuery]);
  return (
    <div className="flex min-w-0 flex-1 flex-wrap items-center gap-2 max-md:basis-full">
      <label className="flex h-8 max-w-[480px] min-w-[220px] flex-1 max-md:max-w-none items-center gap-2 rounded-md border border-g4 px-2 text-g7 focus-within:border-accent">
        <Icon name="search" size={14} />
        <span className="sr-only">Filter runs</span>
        <input
          ref={input}
          value={text}
          maxLength={500}
          spellCheck={false}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") onQuery(text);
            if (event.key === "Escape") event.currentTarget.blur();
          }}
          placeholder="name, id, status:running, tag:x, -tag:y"
          className="mono min-w-0 flex-1 bg-transparent text-sm text-g9 outline-none placeholder:text-g7"
        />
        {text ? (
          <button
            type="button"
            aria-label="Clear the filter"
            onClick={() => {
              setText("");
              onQuery("");
            }}
            className="hover:text-g9"
          >
            <Icon name="close" size={12} />
          </button>
        ) : (
          <Kbd>/</Kbd>
        )}
      </label>
      <div className="flex gap-1 max-md:-ml-2">
        {quick.map(({ label, term }) => {
          const on = hasTerm(query, `status:${term}`);
          return (
            <button
              key={term}
              type="button"
              aria-pressed={on}
              onClick={() => onQuery(withTerm(query, "status", on ? null : term))}
              className={join(
                "h-7 rounded-md px-2 text-sm",
                on ? "bg-accent-soft font-medium text-accent-text" : "text-g7 hover:bg-g2 hover:text-g9",
              )}
            >
              {label}
            </button>
          );
        })}
      </div>
    </div>
  );
}
