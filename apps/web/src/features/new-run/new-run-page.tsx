"use client";
import { parseAsInteger, parseAsString, parseAsStringLiteral, useQueryStates } from "nuqs";
import { type JSX, useMemo, useRef } from "react";
import { problemOf } from "../../api/problem.ts";
import { Button } from "../../design/button.tsx";
import { Chip } from "../../design/chip.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Kbd } from "../../design/kbd.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { Tabs } from "../../design/tabs.tsx";
import { useKeys } from "../shell/keys.ts";
import { useCrumbs } from "../shell/page-header.ts";
import type { Issue } from "./config-field.tsx";
import { parseConfigText } from "./config-text.ts";
import { FormSections } from "./form-sections.tsx";
import { IssueSummary } from "./issue-summary.tsx";
import { PresetList } from "./preset-list.tsx";
import { RunRail } from "./run-rail.tsx";
import { useConfigCheck } from "./use-config-check.ts";
import { useConfigForm } from "./use-config-form.ts";
import { useDraft } from "./use-draft.ts";
import { useLaunch } from "./use-launch.ts";
import { YamlEditor } from "./yaml-editor.tsx";

const noIssues: readonly Issue[] = [];

export function NewRunPage(): JSX.Element {
  const [view, setView] = useQueryStates({
    from: parseAsString,
    version: parseAsInteger,
    preset: parseAsString,
    view: parseAsStringLiteral(["form", "yaml"]).withDefault("form"),
  });
  const {
    draft,
    restored,
    error: sourceError,
    setText,
    choosePreset,
    discard,
  } = useDraft(view.from, view.version, view.preset);
  const text = draft?.text ?? "";
  const parsed = useMemo(() => parseConfigText(text), [text]);
  const { check, checking, error: checkError } = useConfigCheck(draft ? parsed.value : null);
  const summary = useRef<HTMLDivElement>(null);
  useCrumbs([
    { label: "Runs", href: "/runs" },
    { label: "New run", href: "/runs/new" },
  ]);

  const launch = useLaunch(text, parsed.value, { launched: discard, refused: () => summary.current?.focus() });
  const refused = launch.error
    ? problemOf(launch.error).errors.map((issue) => ({ ...issue, fix: issue.fix ?? null }))
    : noIssues;
  const issues: readonly Issue[] = parsed.value
    ? check && !check.ok
      ? check.issues
      : launch.isError
        ? refused
        : noIssues
    : noIssues;
  const blocked = draft === null || parsed.error !== null || (check !== undefined && !check.ok);
  const submit = () => {
    if (launch.isPending || launch.isSuccess) return;
    if (blocked) summary.current?.focus();
    else launch.mutate();
  };
  useKeys("New run", [
    { keys: "mod+Enter", label: "Launch once", run: submit },
    { keys: "1", label: "Form", run: () => void setView({ view: null }) },
    { keys: "2", label: "YAML", run: () => void setView({ view: "yaml" }) },
  ]);

  const { form, catalogue } = useConfigForm(text, parsed, setText, {
    issues,
    warnings: check?.warnings ?? noIssues,
  });
  return (
    <div className="grid min-h-0 flex-1 grid-cols-[minmax(0,1fr)_320px] grid-rows-[auto_minmax(0,1fr)] max-lg:block max-lg:overflow-auto min-[1700px]:grid-cols-[minmax(0,1fr)_400px]">
      <header className="col-span-2 flex min-h-14 items-center gap-3 border-b border-g3 px-4">
        <h1 className="text-xl font-semibold">New run</h1>
        {restored && (
          <Chip title="Kept in this browser while you typed">
            draft restored
            <button type="button" className="hover:underline" onClick={() => choosePreset("quickstart")}>
              · discard
            </button>
          </Chip>
        )}
        <span className="flex-1" />
        <span className="text-sm text-g7" aria-live="polite" data-testid="check-state">
          {parsed.error
            ? "YAML can't be read"
            : checkError
              ? "not checked"
              : checking
                ? "checking"
                : check?.ok
                  ? "no errors"
                  : check
                    ? `${check.issues.length} ${check.issues.length === 1 ? "error" : "errors"}`
                    : ""}
        </span>
        <Button look="primary" onClick={submit} disabled={draft === null || launch.isPending || launch.isSuccess}>
          {launch.isPending || launch.isSuccess ? "Launching" : "Launch run"}
          <span className="mono text-xs opacity-75">⌘↵</span>
        </Button>
      </header>
      <div className="min-h-0 min-w-0 overflow-auto">
        <div className="flex max-w-[1080px] flex-col gap-5 p-4">
          {sourceError && <ErrorBanner error={sourceError} doing="read the run to clone" />}
          {checkError !== null && <ErrorBanner error={checkError} doing="check the config" />}
          {launch.error && refused.length === 0 && (
            <ErrorBanner error={launch.error} doing="launch this run" onRetry={() => launch.mutate()} />
          )}
          <IssueSummary
            ref={summary}
            issues={issues}
            parseError={parsed.error}
            onShowForm={() => void setView({ view: null })}
          />
          <PresetList source={draft?.source?.label ?? null} onChoose={choosePreset} />
          <div className="border-b border-g3">
            <Tabs
              label="Edit as"
              items={[
                { value: "form", label: "Form" },
                { value: "yaml", label: "YAML" },
              ]}
              value={view.view}
              onChange={(next) => void setView({ view: next })}
            />
          </div>
          <div role="tabpanel" id={`panel-${view.view}`} aria-labelledby={`tab-${view.view}`}>
            {!draft ? (
              <Skeleton className="h-96" />
            ) : view.view === "yaml" ? (
              <YamlEditor text={text} onChange={setText} error={parsed.error} />
            ) : (
              <FormSections form={form} catalogue={catalogue} />
            )}
          </div>
        </div>
      </div>
      <aside
        aria-label="This run"
        className="min-h-0 overflow-auto border-l border-g3 p-4 max-lg:border-t max-lg:border-l-0"
      >
        <RunRail check={parsed.error ? undefined : check} source={draft?.source ?? null} value={parsed.value} />
        <p className="mt-5 flex items-center gap-1.5 text-xs text-g7">
          <Kbd>⌘↵</Kbd> launches once; the draft is kept in this browser.
        </p>
      </aside>
    </div>
  );
}
