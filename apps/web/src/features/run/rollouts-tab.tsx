"use client";
import type { Matrix, RunDetail } from "@rolldeck/contracts/api/runs";
import { useQuery } from "@tanstack/react-query";
import { parseAsBoolean, parseAsInteger, parseAsStringLiteral, useQueryStates } from "nuqs";
import { type JSX, useMemo, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button, IconButton } from "../../design/button.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { Icon } from "../../design/icon.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { CellFacts } from "./cell-facts.tsx";
import { MatrixLegend, MatrixTally } from "./matrix-legend.tsx";
import { PurposeSwitch } from "./purpose-switch.tsx";
import { RolloutMatrix } from "./rollout-matrix.tsx";
import { unlessFrozen } from "./unless-frozen.ts";

export function RolloutsTab({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element {
  const trpc = useTRPC();
  const [view, setView] = useQueryStates({
    purpose: parseAsStringLiteral(["train", "evaluate"]).withDefault(run.kind === "evaluate" ? "evaluate" : "train"),
    step: parseAsInteger,
    flagged: parseAsBoolean.withDefault(false),
  });
  const [selected, setSelected] = useState<string | null>(null);
  const picked = view.step !== null && view.step >= 0 ? view.step : null;
  const query = useQuery(
    trpc.runs.matrix.queryOptions(
      { runId: run.runId, purpose: view.purpose, ...(picked === null ? {} : { step: picked }) },
      { enabled: unlessFrozen(frozen), placeholderData: (known) => known, refetchInterval: 10_000 },
    ),
  );
  const whole = query.data;
  const flagged = useMemo(() => whole && onlyFlagged(whole), [whole]);
  const filtered = view.flagged && flagged !== undefined && flagged.groups.length > 0;
  const matrix = filtered ? flagged : whole;
  const go = (step: number | undefined) =>
    step !== undefined && void setView({ step: step === matrix?.steps[0] ? null : step });
  const at = matrix?.step === null || matrix === undefined ? -1 : matrix.steps.indexOf(matrix.step);

  return (
    <>
      <div className="flex flex-wrap items-center gap-3 px-4 py-2">
        <PurposeSwitch
          kind={run.kind}
          purpose={view.purpose}
          onChange={(purpose) => void setView({ purpose, step: null })}
        />
        {matrix && matrix.step !== null && (
          <span className="flex items-center gap-1">
            <IconButton
              label="Older step"
              disabled={!matrix.steps[at + 1] && matrix.steps[at + 1] !== 0}
              onClick={() => go(matrix.steps[at + 1])}
            >
              <Icon name="left" />
            </IconButton>
            <select
              aria-label="Step"
              value={matrix.step}
              onChange={(event) => go(Number(event.target.value))}
              className="num h-7 rounded-md border border-g4 bg-g0 px-1 text-sm"
            >
              {matrix.steps.map((step) => (
                <option key={step} value={step}>
                  {view.purpose === "train" ? "step" : "version"} {step}
                </option>
              ))}
            </select>
            <IconButton label="Newer step" disabled={at <= 0} onClick={() => go(matrix.steps[at - 1])}>
              <Icon name="right" />
            </IconButton>
            <span className="text-sm text-g7">
              {picked === null ? "newest, follows the run" : (matrix.state ?? "")}
            </span>
          </span>
        )}
        <span className="flex-1" />
        {flagged && flagged.groups.length > 0 && (
          <Button
            look="quiet"
            aria-pressed={filtered}
            className={filtered ? "bg-paused-soft text-paused" : undefined}
            title="Only groups with a rollout that its verifier flagged"
            onClick={() => void setView({ flagged: !view.flagged })}
          >
            ⚑ flagged
          </Button>
        )}
        {matrix && <MatrixTally matrix={matrix} />}
      </div>
      {query.error && (
        <div className="px-4 pb-2">
          <QueryError query={query} doing="load the rollouts" />
        </div>
      )}
      {!matrix ? (
        query.isPending && <Skeleton className="mx-4 h-80" />
      ) : matrix.groups.length === 0 && picked !== null && matrix.steps.length > 0 ? (
        <EmptyState title={`There is no ${view.purpose === "train" ? "step" : "evaluation of version"} ${picked}`}>
          <Button onClick={() => void setView({ step: null })}>Show the newest</Button>
        </EmptyState>
      ) : matrix.groups.length === 0 ? (
        <EmptyState title={view.purpose === "train" ? "No rollouts yet" : "No held-out evaluation yet"}>
          <p>
            {view.purpose === "train"
              ? "They appear here when the first step begins."
              : run.config.evaluation.samples === 0
                ? "This run's config asks for none: set evaluation.samples above 0."
                : "The first one runs before the first step."}
          </p>
        </EmptyState>
      ) : (
        <div className="flex min-h-0 flex-1 border-t border-g3">
          <div className="min-w-0 flex-1 overflow-auto p-4">
            <RolloutMatrix matrix={matrix} selected={selected} onSelect={setSelected} />
            <MatrixLegend />
          </div>
          <aside aria-label="Rollout" className="w-[264px] shrink-0 overflow-auto border-l border-g3 p-4 max-md:hidden">
            <CellFacts matrix={matrix} selected={selected} />
          </aside>
        </div>
      )}
    </>
  );
}

/** Whole groups: a flagged rollout is read beside its siblings. */
const onlyFlagged = (matrix: Matrix): Matrix => ({
  ...matrix,
  groups: matrix.groups.filter(({ cells }) => cells.some(({ flags }) => flags.length > 0)),
});
