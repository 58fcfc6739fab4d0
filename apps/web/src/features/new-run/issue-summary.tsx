"use client";
import type { JSX, Ref } from "react";
import type { Issue } from "./config-field.tsx";
import { IssueText } from "./issue-text.tsx";

/** All errors in one place; each leads to its field. Takes the focus when a launch is refused. */
export function IssueSummary({
  ref,
  issues,
  parseError,
  onShowForm,
}: {
  ref: Ref<HTMLDivElement>;
  issues: readonly Issue[];
  parseError: { readonly message: string; readonly line: number | null } | null;
  onShowForm(): void;
}): JSX.Element {
  const go = (path: string) => {
    onShowForm();
    requestAnimationFrame(() => {
      const fields = [...document.querySelectorAll<HTMLElement>("[data-field]")];
      const field =
        fields.find((each) => each.dataset.field === path) ??
        fields.find((each) => path.startsWith(each.dataset.field ?? "\n"));
      field?.scrollIntoView({ block: "center" });
      field?.querySelector<HTMLElement>("input, select, button")?.focus();
    });
  };
  const some = issues.length > 0 || parseError !== null;
  return (
    <div
      ref={ref}
      tabIndex={-1}
      role={some ? "alert" : undefined}
      data-testid="issue-summary"
      className={some ? "rounded-md bg-failed-soft px-3 py-2" : "sr-only"}
    >
      {parseError && (
        <p className="text-failed">
          ▲ {parseError.line === null ? "" : `Line ${parseError.line}: `}
          {parseError.message}
        </p>
      )}
      {issues.length > 0 && (
        <>
          <p className="font-medium text-failed">
            {issues.length === 1 ? "One setting is wrong" : `${issues.length} settings are wrong`}
          </p>
          <ul>
            {issues.map((issue) => (
              <li key={`${issue.path}${issue.message}`} className="flex gap-2">
                <button
                  type="button"
                  onClick={() => go(issue.path)}
                  className="mono shrink-0 text-sm text-accent-text hover:underline"
                >
                  {issue.path || "(config)"}
                </button>
                <span className="min-w-0 [overflow-wrap:anywhere]">
                  <IssueText issue={issue} />
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
