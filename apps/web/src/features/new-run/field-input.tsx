"use client";
import { type JSX, useState } from "react";
import { join } from "../../design/join.ts";
import { ChoicesInput } from "./choices-input.tsx";
import { type Field, nullMeaning } from "./config-fields.ts";
import { type InputProps, inputClass } from "./input-props.ts";
import { StructureInput } from "./structure-input.tsx";

const shown = (value: unknown): string =>
  value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
const defaultText = (field: Field): string =>
  field.default === undefined ? "required" : field.default === null ? nullMeaning(field.help) : shown(field.default);

export function FieldInput(props: InputProps): JSX.Element {
  const { id, field, value, onChange, invalid, disabled, describedBy } = props;
  const common = { id, disabled, "aria-invalid": invalid, "aria-describedby": describedBy };
  const choices = props.options ?? (field.kind === "choice" ? field.choices : null);
  if (choices) {
    const current = typeof value === "string" ? value : "";
    return (
      <select
        {...common}
        className={inputClass}
        value={current}
        onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value)}
      >
        <option value="">{field.default === undefined ? "Choose" : `${defaultText(field)} (${props.unset})`}</option>
        {[...new Set([...choices, ...(current ? [current] : [])])].map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  }
  if (field.kind === "switch" && field.nullable) return <ThreeWayInput {...props} />;
  if (field.kind === "choices") return <ChoicesInput {...props} />;
  if (field.kind === "structure") return <StructureInput {...props} />;
  if (field.kind === "switch") {
    const effective = typeof value === "boolean" ? value : field.default === true;
    return (
      <span className="flex h-8 items-center gap-2">
        <input
          {...common}
          type="checkbox"
          checked={effective}
          onChange={(event) => onChange(event.target.checked === field.default ? undefined : event.target.checked)}
          className="size-4 accent-accent"
        />
        <span className={value === undefined ? "text-g7" : undefined}>{effective ? "yes" : "no"}</span>
      </span>
    );
  }
  if (field.kind === "list" || field.kind === "number-list") return <ListInput {...props} />;
  return <TextInput {...props} />;
}

/** Numbers are kept as typed until they read as one, so that half a number is an error beside the field, not lost. */
function TextInput({ id, field, value, onChange, invalid, disabled, describedBy }: InputProps): JSX.Element {
  const numeric = field.kind === "integer" || field.kind === "number";
  const [draft, setDraft] = useState<{ readonly text: string; readonly for: unknown } | null>(null);
  const text = draft && Object.is(draft.for, value) ? draft.text : shown(value);
  const change = (next: string) => {
    const trimmed = next.trim();
    const number = Number(trimmed);
    const parsed =
      trimmed === ""
        ? undefined
        : numeric
          ? /^null$/i.test(trimmed)
            ? null
            : Number.isFinite(number)
              ? number
              : next
          : next;
    setDraft({ text: next, for: parsed });
    onChange(parsed);
  };
  return (
    <input
      id={id}
      disabled={disabled}
      aria-invalid={invalid}
      aria-describedby={describedBy}
      inputMode={numeric ? "decimal" : undefined}
      value={text}
      placeholder={defaultText(field)}
      onChange={(event) => change(event.target.value)}
      className={join(inputClass, numeric && "num text-sm")}
    />
  );
}

/** Yes, no, or left to somebody else. */
function ThreeWayInput({ id, field, value, onChange, invalid, disabled, describedBy, unset }: InputProps): JSX.Element {
  const answers = new Map<string, boolean | undefined>([
    ["", undefined],
    ["yes", true],
    ["no", false],
  ]);
  return (
    <select
      id={id}
      disabled={disabled}
      aria-invalid={invalid}
      aria-describedby={describedBy}
      className={inputClass}
      value={typeof value === "boolean" ? (value ? "yes" : "no") : ""}
      onChange={(event) => onChange(answers.get(event.target.value))}
    >
      <option value="">
        {nullMeaning(field.help)} ({unset})
      </option>
      <option value="yes">yes</option>
      <option value="no">no</option>
    </select>
  );
}

/** A word that should be a number stays a word, so that the check can name it. */
const asNumber = (word: string): number | string => (Number.isFinite(Number(word)) ? Number(word) : word);

function ListInput({ id, field, value, onChange, invalid, disabled, describedBy }: InputProps): JSX.Element {
  const numbers = field.kind === "number-list";
  const list = Array.isArray(value) ? value.map(String) : [];
  const [draft, setDraft] = useState<{ readonly text: string; readonly for: string } | null>(null);
  const joined = list.join(", ");
  return (
    <input
      id={id}
      disabled={disabled}
      aria-invalid={invalid}
      aria-describedby={describedBy}
      value={draft?.for === joined ? draft.text : joined}
      placeholder={
        Array.isArray(field.default) && field.default.length > 0
          ? field.default.join(", ")
          : `none, or ${numbers ? "numbers" : "words"} with commas`
      }
      onChange={(event) => {
        const items = event.target.value
          .split(",")
          .map((item) => item.trim())
          .filter(Boolean);
        setDraft({ text: event.target.value, for: items.join(", ") });
        onChange(items.length === 0 ? undefined : numbers ? items.map(asNumber) : items);
      }}
      className={inputClass}
    />
  );
}
