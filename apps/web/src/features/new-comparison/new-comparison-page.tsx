"use client";
/** A comparison is written here: one common config, and what each variant changes of it. All of it is in the address. */
import { maxVariants } from "@rolldeck/contracts/api/comparisons";
import { useQuery } from "@tanstack/react-query";
import { parseAsJson, parseAsString, useQueryStates } from "nuqs";
import { type JSX, useRef } from "react";
import { problemOf } from "../../api/problem.ts";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import type { Issue } from "../new-run/config-field.tsx";
import { inputClass } from "../new-run/input-props.ts";
import { useKeys } from "../shell/keys.ts";
import { useCrumbs } from "../shell/page-header.ts";
import { CommonPicker, type CommonSource } from "./common-picker.tsx";
import { FaultList } from "./fault-list.tsx";
import { useCommonConfig } from "./use-common-config.ts";
import { useLaunchComparison } from "./use-launch-comparison.ts";
import { useVariantChecks } from "./use-variant-checks.ts";
import { VariantCard } from "./variant-card.tsx";
import { draftFaults, firstVariants, issuesOfVariant, type VariantDraft, VariantDrafts } from "./variant-draft.ts";

const address = {
  from: parseAsString,
  preset: parseAsString.withDefault("quickstart"),
  name: parseAsString.withDefault("backends"),
  variants: parseAsJson((value) => VariantDrafts.parse(value)).withDefault([...firstVariants]),
};

export function NewComparisonPage(): JSX.Element {
  const trpc = useTRPC();
  const [draft, setDraft] = useQueryStates(address);
  const { variants } = draft;
  const setVariants = (next: readonly VariantDraft[]) => void setDraft({ variants: [...next] });
  const { data: catalogue } = useQuery(trpc.catalogue.get.queryOptions(undefined, { staleTime: 60_000 }));
  const { common, error: sourceError } = useCommonConfig(draft.from, draft.preset);
  const checks = useVariantChecks(common?.config, variants);
  const faultList = useRef<HTMLDivElement>(null);
  const cards = useRef<(HTMLFieldSetElement | null)[]>([]);
  const toFaults = () => faultList.current?.focus();
  const launch = useLaunchComparison({ name: draft.name.trim(), config: common?.config, variants }, toFaults);
  useCrumbs([
    { label: "Compare", href: "/compare" },
    { label: "New comparison", href: "/comparisons/new" },
  ]);

  const refused: readonly Issue[] = launch.error
    ? problemOf(launch.error).errors.map((issue) => ({ ...issue, fix: issue.fix ?? null }))
    : [];
  const issues = checks.map(({ check }, at) => (check && !check.ok ? check.issues : issuesOfVariant(refused, at)));
  const faults = draftFaults(draft.name, variants);
  const refusals = issues.map((each, at) => ({ label: variants[at]?.label ?? "", at, count: each.length }));
  const blocked = !common || faults.length > 0 || refusals.some(({ count }) => count > 0);
  const isBusy = launch.isPending || launch.isSuccess;
  const submit = () => {
    if (isBusy) return;
    if (blocked) toFaults();
    else launch.mutate();
  };
  const add = () => {
    if (variants.length >= maxVariants) return;
    setVariants([...variants, { label: `variant ${variants.length + 1}`, change: {} }]);
    requestAnimationFrame(() => cards.current[variants.length]?.querySelector("input")?.select());
  };
  useKeys("New comparison", [
    { keys: "mod+Enter", label: "Launch once", run: submit },
    { keys: "a", label: "Add a variant", run: add },
  ]);
  const source: CommonSource = draft.from === null ? { preset: draft.preset } : { from: draft.from };
  const choose = (next: CommonSource) =>
    void setDraft("from" in next ? { from: next.from, preset: null } : { from: null, preset: next.preset });
  const count = refusals.reduce((sum, each) => sum + each.count, 0) + faults.length;

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <header className="flex min-h-14 items-center gap-3 border-b border-g3 px-4">
        <h1 className="text-xl font-semibold">New comparison</h1>
        <span className="flex-1" />
        <span className="text-sm text-g7" aria-live="polite" data-testid="check-state">
          {count > 0
            ? `${count} ${count === 1 ? "error" : "errors"}`
            : checks.some(({ error }) => error !== null)
              ? "not checked"
              : checks.some(({ checking }) => checking)
                ? "checking"
                : "no errors"}
        </span>
        <Button look="primary" onClick={submit} disabled={!common || isBusy}>
          {isBusy ? "Launching" : `Launch ${variants.length} runs`}
          <span className="mono text-xs opacity-75">⌘↵</span>
        </Button>
      </header>
      <div className="min-h-0 flex-1 overflow-auto">
        <div className="flex max-w-[1080px] flex-col gap-5 p-4">
          {sourceError && <ErrorBanner error={sourceError} doing="read the run to begin from" />}
          {launch.error && refused.length === 0 && (
            <ErrorBanner error={launch.error} doing="launch this comparison" onRetry={() => launch.mutate()} />
          )}
          <FaultList
            ref={faultList}
            faults={[...faults, ...refused.filter(({ path }) => !path.startsWith("variants[")).map(wordsOf)]}
            refusals={refusals.filter((each) => each.count > 0)}
            onShow={(at) => showFault(cards.current[at])}
          />
          <div className="grid grid-cols-1 items-start gap-4 md:grid-cols-[minmax(0,1fr)_minmax(0,2fr)]">
            <div>
              <label htmlFor="comparison-name" className="font-medium">
                Name
              </label>
              <input
                id="comparison-name"
                className={inputClass}
                maxLength={120}
                value={draft.name}
                placeholder="required"
                onChange={(event) => void setDraft({ name: event.target.value })}
              />
              <p className="mt-0.5 text-xs text-g7">Each run is called after it and its variant.</p>
            </div>
            <CommonPicker source={source} common={common} onChoose={choose} />
          </div>
          <section aria-label="Variants" className="flex flex-col gap-3">
            <div className="flex items-baseline gap-3">
              <h2 className="text-lg font-semibold">Variants</h2>
              <span className="text-sm text-g7">
                A setting that a variant leaves alone is the common config's. The first one is the baseline.
              </span>
            </div>
            {!common
              ? sourceError === null && <Skeleton className="h-64" />
              : variants.map((variant, at) => {
                  const checked = checks[at];
                  return (
                    checked && (
                      <VariantCard
                        // biome-ignore lint/suspicious/noArrayIndexKey: a variant has no other name; its fields hold no state of their own
                        key={at}
                        ref={(card) => {
                          cards.current[at] = card;
                        }}
                        number={at + 1}
                        variant={variant}
                        common={common.config}
                        checked={checked}
                        issues={issues[at] ?? []}
                        catalogue={catalogue}
                        onChange={(next) => setVariants(variants.with(at, next))}
                        onRemove={() => setVariants(variants.toSpliced(at, 1))}
                      />
                    )
                  );
                })}
            <div>
              <Button onClick={add} disabled={variants.length >= maxVariants}>
                Add a variant <span className="mono text-xs text-g7">a</span>
              </Button>
            </div>
          </section>
        </div>
      </div>
    </div>
  );
}

const wordsOf = ({ path, message, fix }: Issue): string => `${path}: ${message}${fix === null ? "" : ` (${fix})`}`;

/** The first control whose field is wrong, or the card's first one. */
function showFault(card: HTMLElement | null | undefined): void {
  const wrong = card?.querySelector<HTMLElement>("[data-testid=field-error]");
  const place = wrong?.closest<HTMLElement>("[data-field]") ?? card;
  place?.scrollIntoView({ block: "center" });
  place?.querySelector<HTMLElement>("input, select, button")?.focus();
}
