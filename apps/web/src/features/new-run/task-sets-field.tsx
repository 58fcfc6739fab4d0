"use client";
import type { Catalogue } from "@rolldeck/contracts/api/system";
import type { JSX } from "react";
import { Button } from "../../design/button.tsx";
import { formatCount } from "../../format/numbers.ts";
import { ConfigField, type FormState } from "./config-field.tsx";
import { taskSetFields } from "./config-fields.ts";
import { pathText, valueAt } from "./config-text.ts";

/** One or several task sets, each with its own weight and limits. */
export function TaskSetsField({
  form,
  catalogue,
}: {
  form: FormState;
  catalogue: Pick<Catalogue, "taskSets"> | undefined;
}): JSX.Element {
  const value = valueAt(form.value, ["taskSets"]);
  const sets: readonly unknown[] = Array.isArray(value) ? value : [];
  const issues = form.issues.get("taskSets") ?? [];
  return (
    <div data-field="taskSets" className="flex flex-col gap-3">
      {sets.map((set, index) => {
        const name = valueAt(set, ["name"]);
        const known = catalogue?.taskSets.find((each) => each.name === name);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a task set is its place in the list
          <fieldset key={index} className="rounded-md border border-g3 p-3 pt-2">
            <legend className="px-1 font-medium">Task set {sets.length > 1 ? index + 1 : ""}</legend>
            <div className="grid grid-cols-1 md:grid-cols-2 gap-x-4 gap-y-3 xl:grid-cols-4">
              {taskSetFields.map((field) => (
                <ConfigField key={pathText(field.path)} field={field} form={form} base={["taskSets", index]} />
              ))}
            </div>
            {known && (
              <p className="mt-2 text-sm text-g8">
                {known.description}{" "}
                <span className="text-g7">
                  {known.sizes.train === null ? "Endless instances" : `${formatCount(known.sizes.train)} instances`},
                  tools <span className="mono">{known.tools.join(", ")}</span>, sandbox {known.sandbox}, at most{" "}
                  {formatCount(known.defaults.maxTurns)} turns by default.
                </span>
              </p>
            )}
            {sets.length > 1 && (
              <Button
                look="quiet"
                small
                className="mt-1"
                disabled={form.locked}
                onClick={() =>
                  form.set(
                    ["taskSets"],
                    sets.filter((_, at) => at !== index),
                  )
                }
              >
                Remove task set
              </Button>
            )}
          </fieldset>
        );
      })}
      {issues.map((issue) => (
        <p key={issue.message} data-testid="field-error" className="text-xs text-failed">
          ▲ {issue.message}
        </p>
      ))}
      <div>
        <Button
          disabled={form.locked || sets.length >= 32}
          onClick={() => form.set(["taskSets", sets.length], { name: catalogue?.taskSets[0]?.name ?? "key-chain" })}
        >
          Add a task set
        </Button>
      </div>
    </div>
  );
}
