"use client";
import { type JSX, useRef } from "react";
import { useKeys } from "../../shell/keys.ts";

/** Words to look for; `/` leads here, Escape away. */
export function FilterInput({
  label,
  value,
  onChange,
  onEnter,
}: {
  label: string;
  value: string;
  onChange(value: string): void;
  onEnter?(backwards: boolean): void;
}): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  useKeys(label, [{ keys: "/", label, run: () => input.current?.focus() }]);
  return (
    <input
      ref={input}
      aria-label={label}
      placeholder={`${label} (/)`}
      value={value}
      maxLength={200}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.blur();
        else if (event.key === "Enter" && onEnter) onEnter(event.shiftKey);
        else return;
        event.preventDefault();
      }}
      className="h-7 w-[180px] rounded-md border border-g4 bg-transparent px-2 text-sm"
    />
  );
}
