"use client";
/** One whole number with its label; what is typed is kept until it reads as one. */
import { type JSX, useId } from "react";
import { join } from "../../design/join.ts";

export interface NumberLimits {
  readonly min: number;
  readonly max: number;
  /** Whole numbers only; default true. */
  readonly whole?: boolean;
}

/** Null: not a number within the limits. */
export function readNumber(text: string, { min, max, whole = true }: NumberLimits): number | null {
  if (text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) && (!whole || Number.isInteger(value)) && value >= min && value <= max ? value : null;
}

export function NumberField({
  label,
  hint,
  text,
  limits,
  onChange,
  width = "w-20",
}: {
  label: string;
  hint?: string;
  text: string;
  limits: NumberLimits;
  onChange(text: string): void;
  width?: string;
}): JSX.Element {
  const id = useId();
  const invalid = text !== "" && readNumber(text, limits) === null;
  return (
    <div className="flex flex-col gap-0.5">
      <label htmlFor={id} className="text-sm text-g7" title={hint}>
        {label}
      </label>
      <input
        id={id}
        inputMode="numeric"
        value={text}
        aria-invalid={invalid}
        title={invalid ? `${limits.min} to ${limits.max}` : hint}
        onChange={(event) => onChange(event.target.value)}
        className={join("num h-8 rounded-md border bg-g0 px-2 text-sm", width, invalid ? "border-failed" : "border-g4")}
      />
    </div>
  );
}
