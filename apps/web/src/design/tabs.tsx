"use client";
import type { JSX, KeyboardEvent } from "react";
import { join } from "./join.ts";

export interface TabItem<T extends string> {
  readonly value: T;
  readonly label: string;
  readonly count?: string;
}

/** A row of tabs; the panel beside it carries `id={`panel-${value}`}`. Arrow keys move between tabs. */
export function Tabs<T extends string>({
  items,
  value,
  onChange,
  label,
}: {
  items: readonly TabItem<T>[];
  value: T;
  onChange(value: T): void;
  label: string;
}): JSX.Element {
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const at = items.findIndex((item) => item.value === value);
    const next = items[(at + move + items.length) % items.length];
    if (!next) return;
    event.preventDefault();
    onChange(next.value);
    document.getElementById(`tab-${next.value}`)?.focus();
  };
  return (
    <div role="tablist" aria-label={label} onKeyDown={onKeyDown} className="flex h-9 gap-1">
      {items.map((item) => {
        const selected = item.value === value;
        return (
          <button
            key={item.value}
            type="button"
            role="tab"
            id={`tab-${item.value}`}
            aria-selected={selected}
            aria-controls={`panel-${item.value}`}
            tabIndex={selected ? 0 : -1}
            onClick={() => onChange(item.value)}
            className={join(
              "relative px-2 text-base whitespace-nowrap transition-colors duration-100",
              selected
                ? "font-medium text-g9 after:absolute after:inset-x-1 after:bottom-0 after:h-[2px] after:bg-g9"
                : "text-g7 hover:text-g9",
            )}
          >
            {item.label}
            {item.count && <span className="num ml-1.5 text-xs text-g7">{item.count}</span>}
          </button>
        );
      })}
    </div>
  );
}
