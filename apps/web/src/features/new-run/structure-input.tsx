"use client";
import { type JSX, useState } from "react";
import { parse, stringify } from "yaml";
import { join } from "../../design/join.ts";
import { type InputProps, inputClass } from "./input-props.ts";

/**
 * A mapping or a list of mappings, as YAML. What can't be read yet goes into the config as the text it is, so that the check
 * refuses it: what is launched is never something else than what is on the screen.
 */
export function StructureInput({
  id,
  field,
  value,
  onChange,
  invalid,
  disabled,
  describedBy,
}: InputProps): JSX.Element {
  const text = textOf(value);
  const [draft, setDraft] = useState<{ readonly text: string; readonly for: string; readonly error: string | null }>();
  const current = draft?.for === text ? draft : { text, error: null };
  const change = (next: string) => {
    const read = readStructure(next);
    const kept = read.error === null ? read.value : next;
    setDraft({ text: next, for: textOf(kept), error: read.error });
    onChange(isEmpty(kept) ? undefined : kept);
  };
  return (
    <>
      <textarea
        id={id}
        disabled={disabled}
        aria-invalid={invalid || current.error !== null}
        aria-describedby={describedBy}
        spellCheck={false}
        rows={Math.min(8, Math.max(2, current.text.split("\n").length))}
        value={current.text}
        placeholder={Array.isArray(field.default) ? "none, or YAML: - server: name" : "none, or YAML: name: value"}
        onChange={(event) => change(event.target.value)}
        className={join(inputClass, "mono h-auto resize-y py-1 text-sm leading-[18px]")}
      />
      {current.error && <p className="text-xs text-failed">▲ {current.error}</p>}
    </>
  );
}

/** A text is one that could not be read. */
const textOf = (value: unknown): string =>
  typeof value === "string" ? value : isEmpty(value) ? "" : stringify(value, { lineWidth: 0 }).trimEnd();

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);

function readStructure(text: string): { readonly value: unknown; readonly error: string | null } {
  try {
    const value: unknown = parse(text, { maxAliasCount: 50 });
    if (value !== null && typeof value !== "object") return { value: null, error: "not a mapping or list yet" };
    return { value, error: null };
  } catch (cause) {
    return { value: null, error: (cause instanceof Error ? cause.message : String(cause)).split("\n")[0] ?? "" };
  }
}
