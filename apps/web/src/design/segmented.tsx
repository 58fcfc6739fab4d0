"use client";
import type { JSX } from "react";
import { join } from "./join.ts";

/** A small choice of one among few, always visible. */
export function Segmented<T extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly { readonly value: T; readonly label: string; readonly title?: string }[];
  value: T;
  onChange(value: T): void;
}): JSX.Element {
  return (
    <fieldset className="inline-flex h-7 items-stretch overflow-hidden rounded-md border border-g4">
      <legend className="sr-only">{label}</legend>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          title={option.title}
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
          className={join(
            "border-r border-g4 px-2 text-sm whitespace-nowrap last:border-r-0",
            option.value === value ? "bg-g3 font-medium text-g9" : "text-g7 hover:bg-g2 hover:text-g9",
          )}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}
