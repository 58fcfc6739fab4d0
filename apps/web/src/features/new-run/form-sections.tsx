"use client";
import type { Catalogue } from "@rolldeck/contracts/api/system";
import type { JSX } from "react";
import { MarkedText } from "../../design/marked-text.tsx";
import { ConfigField, type FormState } from "./config-field.tsx";
import { sections } from "./config-fields.ts";
import { pathText } from "./config-text.ts";
import { TaskSetsField } from "./task-sets-field.tsx";

/** Four sections, every field of the schema, each with its default and help. */
export function FormSections({
  form,
  catalogue,
}: {
  form: FormState;
  catalogue: Pick<Catalogue, "taskSets"> | undefined;
}): JSX.Element {
  return (
    <div className="flex flex-col gap-8">
      {form.locked && (
        <p className="rounded-md bg-paused-soft px-3 py-2 text-paused">
          <MarkedText shape="bars">
            The YAML can't be read, so the form rests. Mend the text in the YAML tab first.
          </MarkedText>
        </p>
      )}
      {sections.map((section) => (
        <section key={section.id} aria-labelledby={`section-${section.id}`} className="flex flex-col gap-4">
          <h2 id={`section-${section.id}`} className="text-lg font-semibold">
            {section.title}
          </h2>
          {section.id === "task" && <TaskSetsField form={form} catalogue={catalogue} />}
          {section.groups.map((group) => (
            <div key={group.title || section.id}>
              {group.title && <h3 className="mb-2 border-b border-g3 pb-1 text-sm text-g7">{group.title}</h3>}
              <div className="grid grid-cols-1 md:grid-cols-2 items-start gap-x-4 gap-y-3 xl:grid-cols-3">
                {group.fields.map((field) => (
                  <ConfigField key={pathText(field.path)} field={field} form={form} />
                ))}
              </div>
            </div>
          ))}
        </section>
      ))}
    </div>
  );
}
