"use client";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { Schedule } from "@rolldeck/contracts/api/schedule";
import { useQuery } from "@tanstack/react-query";
import { parseAsInteger, parseAsStringLiteral, useQueryStates } from "nuqs";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { useWidth } from "../../charts/use-width.ts";
import { Button } from "../../design/button.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { PurposeSwitch } from "../run/purpose-switch.tsx";
import { unlessFrozen } from "../run/unless-frozen.ts";
import { DiscardsPanel } from "./discards-panel.tsx";
import { EngineNow } from "./engine-now.tsx";
import { Gantt } from "./gantt.tsx";
import { PartControls } from "./part-controls.tsx";
import { PredictionPanel } from "./prediction-panel.tsx";
import { SimulatePanel } from "./simulate-panel.tsx";
import { StepPicker } from "./step-picker.tsx";
import { TimeBar } from "./time-bar.tsx";
import { WaitingNow } from "./waiting-now.tsx";

/** A step of many rollouts is a large answer: it is fetched less often. */
const refreshMs = (schedule: Schedule | undefined): number | false =>
  schedule?.over ? false : (schedule?.rollouts.rolloutId.length ?? 0) > 1024 ? 10_000 : 2_000;

export function ScheduleTab({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element {
  const trpc = useTRPC();
  const [shown, setShown] = useQueryStates({
    purpose: parseAsStringLiteral(["train", "evaluate"]).withDefault(run.kind === "evaluate" ? "evaluate" : "train"),
    step: parseAsInteger,
    from: parseAsInteger,
    to: parseAsInteger,
  });
  const [box, width] = useWidth<HTMLDivElement>();
  const ended = run.endedAt !== null;
  const picked = shown.step !== null && shown.step >= 0 ? shown.step : null;
  const query = useQuery(
    trpc.schedule.ofStep.queryOptions(
      { runId: run.runId, purpose: shown.purpose, ...(picked === null ? {} : { step: picked }) },
      {
        enabled: unlessFrozen(frozen),
        placeholderData: (known) => known,
        // The newest step's end is not the run's: another may follow.
        refetchInterval: ({ state }) =>
          ended ? false : picked === null ? refreshMs(state.data) || 5_000 : refreshMs(state.data),
      },
    ),
  );
  const waiting = useQuery(
    trpc.schedule.waiting.queryOptions(
      { runId: run.runId },
      { enabled: !frozen && !ended, placeholderData: (known) => known, refetchInterval: 2_000 },
    ),
  );
  const schedule = query.data;
  // Another step has another span of time.
  const pick = (step: number | null) => void setShown({ step, from: null, to: null });
  return (
    <div className="flex min-h-0 flex-1 flex-col overflow-auto">
      <div className="flex flex-wrap items-center gap-3 px-4 py-2">
        <PurposeSwitch
          kind={run.kind}
          purpose={shown.purpose}
          onChange={(purpose) => void setShown({ purpose, step: null, from: null, to: null })}
        />
        <StepPicker
          steps={schedule?.steps ?? []}
          step={schedule?.step ?? null}
          noun={shown.purpose === "train" ? "step" : "version"}
          follows={picked === null && !ended}
          onChange={pick}
        />
        {schedule?.state && <span className="text-sm text-g7">{schedule.state}</span>}
        <span className="flex-1" />
        {schedule && !ended && <PartControls run={run} purpose={shown.purpose} step={schedule.step} />}
      </div>
      {(query.error || waiting.error) && (
        <div className="px-4 pb-2">
          <ErrorBanner
            error={query.error ?? waiting.error}
            doing={query.error ? "load the schedule" : "say who waits"}
            shownSince={(query.error ? query : waiting).dataUpdatedAt}
            onRetry={() => void (query.error ? query : waiting).refetch()}
          />
        </div>
      )}
      <div className="min-w-0 px-4 pb-6">
        <div ref={box} className="flex min-w-0 flex-col gap-5">
          {query.isPending && <Skeleton className="h-96" />}
          {schedule && schedule.rollouts.rolloutId.length > 0 && (
            <TimeBar time={schedule.time} rollouts={schedule.rollouts.rolloutId.length} />
          )}
          {!ended && waiting.data && <EngineNow engine={waiting.data.engine} />}
          {!ended && waiting.data && schedule && schedule.step !== null && <WaitingNow waiting={waiting.data} />}
          {schedule && schedule.rollouts.rolloutId.length > 0 && width > 0 && (
            <Gantt run={run} schedule={schedule} width={width} />
          )}
          {schedule && schedule.rollouts.rolloutId.length === 0 && (
            <NoSchedule run={run} purpose={shown.purpose} picked={picked} onNewest={() => pick(null)} />
          )}
          {schedule && shown.purpose === run.kind && run.config.stepSource === "planned" && (
            <PredictionPanel prediction={schedule.prediction} ended={ended} />
          )}
          {shown.purpose === "train" && <DiscardsPanel run={run} frozen={frozen} />}
          <SimulatePanel run={run} />
        </div>
      </div>
    </div>
  );
}

function NoSchedule({
  run,
  purpose,
  picked,
  onNewest,
}: {
  run: RunDetail;
  purpose: Schedule["purpose"];
  picked: number | null;
  onNewest(): void;
}): JSX.Element {
  if (picked !== null)
    return (
      <EmptyState title={`There is no ${purpose === "train" ? "step" : "evaluation of version"} ${picked}`}>
        <Button onClick={onNewest}>Show the newest</Button>
      </EmptyState>
    );
  return (
    <EmptyState title={run.endedAt === null ? "Nothing is scheduled yet" : "Nothing was scheduled"}>
      <p>
        {purpose === "evaluate" && run.config.evaluation.samples === 0
          ? "This run's config asks for no held-out evaluation: set evaluation.samples above 0."
          : run.endedAt !== null
            ? `The run is ${run.status}: it ended before its first ${purpose === "train" ? "step" : "held-out evaluation"}.`
            : purpose === "train"
              ? "Lanes appear when the first step begins. What a step will take can be predicted below before that."
              : run.kind === "evaluate"
                ? "Lanes appear when its first rollouts are admitted."
                : "The first held-out evaluation runs before the first step."}
      </p>
    </EmptyState>
  );
}
