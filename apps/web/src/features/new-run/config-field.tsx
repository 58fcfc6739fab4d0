"use client";
import type { ConfigIssue } from "@rolldeck/contracts/api/runs";
import { type JSX, useId } from "react";
import type { z } from "zod";
import { CodeText } from "../../design/code-text.tsx";
import { join } from "../../design/join.ts";
import { MarkedText } from "../../design/marked-text.tsx";
import { type Field, fieldLabel, helpText } from "./config-fields.ts";
import { type Path, pathText, valueAt } from "./config-text.ts";
import { FieldInput } from "./field-input.tsx";
import { IssueText } from "./issue-text.tsx";

export type Issue = z.infer<typeof ConfigIssue>;
export interface FormState {
  readonly value: unknown;
  readonly set: (path: Path, value: unknown) => void;
  readonly issues: ReadonlyMap<string, readonly Issue[]>;
  readonly warnings: ReadonlyMap<string, readonly Issue[]>;
  /** Names that a field may take, by path. */
  readonly options: ReadonlyMap<string, readonly string[]>;
  /** Values that the chosen backend can't honour, in words, by path; the check refuses them. */
  readonly limits: ReadonlyMap<string, string>;
  /** What the server knows about a field, by path. */
  readonly notes: ReadonlyMap<string, string>;
  /** What a field has that is left alone, in words: `default`. */
  readonly unset: string;
  readonly locked: boolean;
}

/** Label, control, help, and what is wrong with it, in one block that a problem's path leads to. */
export function ConfigField({ field, form, base = [] }: { field: Field; form: FormState; base?: Path }): JSX.Element {
  const id = useId();
  const path = [...base, ...field.path];
  const name = pathText(path);
  const generic = name.replace(/\[\d+\]/g, "[]");
  const issues = form.issues.get(name) ?? [];
  const value = valueAt(form.value, path);
  if (field.kind === "optional-group") return <OptionalGroup field={field} form={form} base={base} />;
  return (
    <div data-field={name} className="flex min-w-0 flex-col">
      <label htmlFor={id} className={join("flex items-baseline gap-1.5", value !== undefined && "font-medium")}>
        <span className="truncate">{fieldLabel(field)}</span>
        {value !== undefined && field.default !== undefined && (
          <button
            type="button"
            title={`Back to the ${form.unset === "default" ? "default" : `value ${form.unset}`}`}
            onClick={() => form.set(path, undefined)}
            className="text-xs font-normal text-g7 hover:text-g9 hover:underline"
          >
            reset
          </button>
        )}
      </label>
      <FieldInput
        id={id}
        field={field}
        value={value}
        onChange={(next) => form.set(path, next)}
        invalid={issues.length > 0}
        disabled={form.locked}
        describedBy={`${id}-help`}
        options={form.options.get(generic) ?? null}
        unset={form.unset}
      />
      <FieldWords id={`${id}-help`} field={field} form={form} name={name} />
    </div>
  );
}

/** What is wrong with a field, what the server says of it, and its help. */
function FieldWords({
  id,
  field,
  form,
  name,
}: {
  id: string;
  field: Field;
  form: FormState;
  name: string;
}): JSX.Element {
  const issues = form.issues.get(name) ?? [];
  const reason = form.limits.get(name);
  return (
    <div id={id} className="mt-0.5 text-xs text-g7">
      {issues.map((issue) => (
        <p key={issue.message} data-testid="field-error" className="text-failed">
          ▲ <IssueText issue={issue} />
        </p>
      ))}
      {form.warnings.get(name)?.map((warning) => (
        <p key={warning.message} className="text-paused">
          <MarkedText shape="bars">
            <IssueText issue={warning} />
          </MarkedText>
        </p>
      ))}
      {form.notes.has(name) && <p>{form.notes.get(name)}</p>}
      {reason && issues.length === 0 && <p>Limit of this backend: {reason}</p>}
      <p>
        <CodeText text={helpText(field)} />
        {field.limits && (
          <>
            {field.help ? " · " : ""}
            <span className="figures whitespace-nowrap">{field.limits}</span>
          </>
        )}
      </p>
    </div>
  );
}

/** A setting that is off (null) or a group of its own fields. */
function OptionalGroup({ field, form, base }: { field: Field; form: FormState; base: Path }): JSX.Element {
  const path = [...base, ...field.path];
  const name = pathText(path);
  const value = valueAt(form.value, path);
  const on = value !== null && value !== undefined;
  const id = useId();
  return (
    <fieldset data-field={name} className="col-span-full rounded-md border border-g3 p-3 pt-2">
      <legend className="px-1">
        <label className="inline-flex items-center gap-2 font-medium">
          <input
            type="checkbox"
            checked={on}
            disabled={form.locked}
            aria-describedby={`${id}-help`}
            onChange={(event) => form.set(path, event.target.checked ? {} : undefined)}
            className="size-4 accent-accent"
          />
          {field.label}
        </label>
      </legend>
      <FieldWords id={`${id}-help`} field={field} form={form} name={name} />
      {on && (
        <div className="mt-2 grid grid-cols-1 md:grid-cols-2 gap-x-4 gap-y-3 xl:grid-cols-3">
          {field.fields.map((inner) => (
            <ConfigField key={pathText(inner.path)} field={inner} form={form} base={base} />
          ))}
        </div>
      )}
    </fieldset>
  );
}
