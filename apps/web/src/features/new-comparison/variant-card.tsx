"use client";
import { type JSX, type Ref, useId } from "react";
import { Button } from "../../design/button.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { ConfigField, type FormState, type Issue } from "../new-run/config-field.tsx";
import type { Field } from "../new-run/config-fields.ts";
import { type Path, pathText, valueAt } from "../new-run/config-text.ts";
import { fieldNotes, fieldOptions, type KnownNames } from "../new-run/field-options.ts";
import { inputClass } from "../new-run/input-props.ts";
import { IssueText } from "../new-run/issue-text.tsx";
import { formOver } from "../new-run/use-config-form.ts";
import type { VariantCheck } from "./use-variant-checks.ts";
import { changed, type VariantDraft, variantFields } from "./variant-draft.ts";

interface VariantFormProps {
  variant: VariantDraft;
  common: unknown;
  checked: VariantCheck;
  issues: readonly Issue[];
  catalogue: KnownNames | undefined;
  onChange(variant: VariantDraft): void;
}

/** One variant: its label, its backend, what else it changes, and what its backend refuses, each beside its field. */
export function VariantCard({
  ref,
  number,
  onRemove,
  ...edited
}: VariantFormProps & {
  ref: Ref<HTMLFieldSetElement>;
  /** From 1. */
  number: number;
  onRemove(): void;
}): JSX.Element {
  const { variant, common, checked, issues, onChange } = edited;
  const id = useId();
  const { backend, others, elsewhere } = variantFields(variant, common, checked.merged, issues);
  const form = useVariantForm(edited);
  const count = issues.length;
  return (
    <fieldset ref={ref} data-testid="variant" className="rounded-md border border-g3 p-3 pt-2">
      <legend className="sr-only">{`Variant ${number}: ${variant.label}`}</legend>
      <div className="mb-3 flex items-end gap-3">
        <div className="w-72 min-w-0">
          <label htmlFor={id} className="font-medium">
            Label of variant {number}
          </label>
          <input
            id={id}
            className={inputClass}
            maxLength={60}
            value={variant.label}
            placeholder="required"
            onChange={(event) => onChange({ ...variant, label: event.target.value })}
          />
        </div>
        <span className="flex-1" />
        <span className={count > 0 ? "pb-1.5 text-sm text-failed" : "pb-1.5 text-sm text-g7"}>
          {checked.error
            ? "not checked"
            : checked.checking
              ? "checking"
              : count > 0
                ? `▲ ${count} refused`
                : "no errors"}
        </span>
        <Button look="quiet" onClick={onRemove} aria-label={`Remove variant ${number}`}>
          Remove
        </Button>
      </div>
      {checked.error !== null && <ErrorBanner error={checked.error} doing={`check variant ${number}`} />}
      <FieldGrid fields={backend} form={form} />
      {others.length > 0 && (
        <>
          <h3 className="mt-4 mb-2 border-b border-g3 pb-1 text-sm text-g7">Other settings of this variant</h3>
          <FieldGrid fields={others} form={form} />
        </>
      )}
      {elsewhere.map((issue) => (
        <p key={`${issue.path}${issue.message}`} data-testid="field-error" className="mt-2 text-sm text-failed">
          ▲ <span className="mono">{issue.path || "(config)"}</span> <IssueText issue={issue} />
        </p>
      ))}
    </fieldset>
  );
}

function FieldGrid({ fields, form }: { fields: readonly Field[]; form: (field: Field) => FormState }): JSX.Element {
  return (
    <div className="grid grid-cols-1 items-start gap-x-4 gap-y-3 md:grid-cols-2 xl:grid-cols-3">
      {fields.map((field) => (
        <ConfigField key={pathText(field.path)} field={field} form={form(field)} />
      ))}
    </div>
  );
}

/** A field shows what the variant changes; a group that is on or off, what comes of it. */
function useVariantForm({
  variant,
  common,
  checked,
  issues,
  catalogue,
  onChange,
}: VariantFormProps): (field: Field) => FormState {
  const backend = valueAt(checked.merged, ["backend", "name"]) ?? "gpu-worker";
  const set = (field: Field, path: Path, value: unknown) => {
    // A group that is on in the common config is switched off by null.
    const isOff = value === undefined && field.kind === "optional-group" && path.length === field.path.length;
    const next = isOff && valueAt(common, path) != null ? null : value;
    onChange({ ...variant, change: changed(variant.change, path, next) });
  };
  return (field) => ({
    ...formOver({ issues, warnings: checked.check?.warnings ?? [], catalogue, backendName: backend }),
    value: field.kind === "optional-group" ? checked.merged : variant.change,
    set: (path, value) => set(field, path, value),
    options: fieldOptions(catalogue, backend),
    notes: fieldNotes(catalogue),
    unset: "as in the common config",
    locked: false,
  });
}
