"use client";
import type { JSX } from "react";
import { nullMeaning } from "./config-fields.ts";
import type { InputProps } from "./input-props.ts";

/** Any of a fixed list; where null is allowed, also "as it is elsewhere said", which is not the same as none of them. */
export function ChoicesInput({ id, field, value, onChange, disabled, describedBy }: InputProps): JSX.Element {
  const chosen = Array.isArray(value) ? value.map(String) : [];
  const own = Array.isArray(value);
  const toggle = (choice: string, on: boolean) =>
    onChange(field.choices.filter((each) => (each === choice ? on : chosen.includes(each))));
  return (
    <fieldset id={id} disabled={disabled} aria-describedby={describedBy} className="flex flex-col py-1">
      <legend className="sr-only">{field.label}</legend>
      {field.nullable && (
        <label className="inline-flex items-center gap-2">
          <input
            type="checkbox"
            checked={!own}
            onChange={(event) => onChange(event.target.checked ? undefined : [])}
            className="size-4 accent-accent"
          />
          {nullMeaning(field.help)} (default)
        </label>
      )}
      {field.choices.map((choice) => (
        <label key={choice} className="inline-flex items-center gap-2">
          <input
            type="checkbox"
            checked={chosen.includes(choice)}
            onChange={(event) => toggle(choice, event.target.checked)}
            className="size-4 accent-accent"
          />
          <span className="mono text-sm">{choice}</span>
        </label>
      ))}
    </fieldset>
  );
}
