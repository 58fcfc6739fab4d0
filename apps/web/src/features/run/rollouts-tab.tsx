"use client";
import type { Matrix, RunDetail } from "@rolldeck/contracts/api/runs";
import { endingRule } from "@rolldeck/contracts/endings";
import { useQuery } from "@tanstack/react-query";
import { parseAsInteger, parseAsStringLiteral, useQueryStates } from "nuqs";
import { type JSX, useMemo, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { ButtonLink, IconButton } from "../../design/button.tsx";
import { CopyText } from "../../design/copy-text.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Facts } from "../../design/facts.tsx";
import { Icon } from "../../design/icon.tsx";
import { rewardColour } from "../../design/reward-colour.ts";
import { Segmented } from "../../design/segmented.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { formatCount, formatNumber, shortenId } from "../../format/numbers.ts";
import { CellGlyph, type CellKind, cellKind, cellKinds, kindLabels } from "./cell-glyph.tsx";
import { RolloutMatrix } from "./rollout-matrix.tsx";

export function RolloutsTab({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element {
  const trpc = useTRPC();
  const [view, setView] = useQueryStates({
    purpose: parseAsStringLiteral(["train", "evaluate"]).withDefault(run.kind === "evaluate" ? "evaluate" : "train"),
    step: parseAsInteger,
  });
  const [selected, setSelected] = useState<string | null>(null);
  const query = useQuery(
    trpc.runs.matrix.queryOptions(
      { runId: run.runId, purpose: view.purpose, ...(view.step === null ? {} : { step: view.step }) },
      { enabled: !frozen, placeholderData: (known) => known, refetchInterval: 10_000 },
    ),
  );
  const matrix = query.data;
  const go = (step: number | undefined) =>
    step !== undefined && void setView({ step: step === matrix?.steps[0] ? null : step });
  const at = matrix?.step === null || matrix === undefined ? -1 : matrix.steps.indexOf(matrix.step);

  return (
    <>
      <div className="flex flex-wrap items-center gap-3 px-4 py-2">
        <Segmented
          label="Purpose"
          options={[
            { value: "train", label: "Train" },
            { value: "evaluate", label: "Held-out" },
          ]}
          value={view.purpose}
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
              {view.step === null ? "newest, follows the run" : (matrix.state ?? "")}
            </span>
          </span>
        )}
        <span className="flex-1" />
        {matrix && <Tally matrix={matrix} />}
      </div>
      {query.error && (
        <div className="px-4 pb-2">
          <ErrorBanner error={query.error} doing="load the rollouts" onRetry={() => void query.refetch()} />
        </div>
      )}
      {!matrix ? (
        query.isPending && <Skeleton className="mx-4 h-80" />
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
            <Legend />
          </div>
          <aside aria-label="Rollout" className="w-[264px] shrink-0 overflow-auto border-l border-g3 p-4">
            <CellFacts matrix={matrix} selected={selected} />
          </aside>
        </div>
      )}
    </>
  );
}

function Tally({ matrix }: { matrix: Matrix }): JSX.Element {
  const counts = useMemo(() => {
    const map = new Map<CellKind, number>();
    for (const group of matrix.groups)
      for (const cell of group.cells) map.set(cellKind(cell), (map.get(cellKind(cell)) ?? 0) + 1);
    return map;
  }, [matrix.groups]);
  return (
    <span className="flex flex-wrap items-center gap-3 text-sm text-g8">
      {cellKinds
        .filter((kind) => counts.has(kind))
        .map((kind) => (
          <span
            key={kind}
            title={kindLabels[kind]}
            className={`num inline-flex items-center gap-1 ${kind === "failed" ? "text-failed" : ""}`}
          >
            <CellGlyph kind={kind} />
            {formatCount(counts.get(kind) ?? 0)}
            <span className="sr-only">{kindLabels[kind]}</span>
          </span>
        ))}
    </span>
  );
}

function Legend(): JSX.Element {
  return (
    <div className="mt-6 flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-g7">
      <span className="inline-flex items-center gap-1.5">
        below
        <span aria-hidden="true" className="flex">
          {[-1, -0.5, 0, 0.5, 1].map((value) => (
            <span key={value} className="h-3 w-5" style={{ background: rewardColour(value) }} />
          ))}
        </span>
        above the group's mean reward
      </span>
      {cellKinds.map((kind) => (
        <span key={kind} className="inline-flex items-center gap-1">
          <CellGlyph kind={kind} />
          {kindLabels[kind]}
        </span>
      ))}
    </div>
  );
}

function CellFacts({ matrix, selected }: { matrix: Matrix; selected: string | null }): JSX.Element {
  const group = matrix.groups.find((each) => each.cells.some((cell) => cell.rolloutId === selected));
  const cell = group?.cells.find((each) => each.rolloutId === selected);
  if (!group || !cell)
    return (
      <p className="text-sm text-g7">Point at a rollout to see it here. Click it or press Enter to read its turns.</p>
    );
  const kind = cellKind(cell);
  return (
    <div className="flex flex-col gap-3">
      <h2 className="flex items-center gap-2 font-semibold">
        <CellGlyph kind={kind} />
        {cell.ending ? endingRule(cell.ending).label : kindLabels[kind]}
      </h2>
      <Facts
        rows={[
          [
            "Reward",
            <span key="r" className="num">
              {formatNumber(cell.reward)}
            </span>,
          ],
          [
            "Group mean",
            <span key="m" className="num">
              {formatNumber(group.mean)}
            </span>,
          ],
          [
            "Turns",
            <span key="t" className="num">
              {formatCount(cell.turns)}
            </span>,
          ],
          ["Stage", `${cell.stage}, ${cell.state}`],
          [
            "Attempt",
            <span key="a" className="num">
              {cell.attempt}
            </span>,
          ],
          ["Task", group.taskSet],
          [
            "Instance",
            <span key="i" className="mono">
              {group.instanceId}
            </span>,
          ],
          [
            "Sample",
            <span key="s" className="num">
              {cell.sample}
            </span>,
          ],
          [
            "Rollout",
            <CopyText key="c" text={cell.rolloutId}>
              {shortenId(cell.rolloutId)}
            </CopyText>,
          ],
        ]}
      />
      <div>
        <ButtonLink href={`/runs/${matrix.runId}/t/${cell.rolloutId}`}>Open rollout</ButtonLink>
      </div>
    </div>
  );
}
