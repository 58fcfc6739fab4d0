"use client";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import Link from "next/link";
import { type JSX, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button, ButtonLink } from "../../design/button.tsx";
import { Chip } from "../../design/chip.tsx";
import { ConfirmDialog } from "../../design/confirm-dialog.tsx";
import { CopyText } from "../../design/copy-text.tsx";
import { DoingDialog } from "../../design/doing-dialog.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { StatusMark } from "../../design/status-mark.tsx";
import { useNow } from "../../design/time-ago.tsx";
import { formatCount, shortenId } from "../../format/numbers.ts";
import { formatDuration, formatUtc } from "../../format/times.ts";
import { DispatchDialog } from "../schedule/dispatch-dialog.tsx";
import { drainWords } from "../schedule/part-words.ts";
import { CostLine } from "./cost-line.tsx";

type Action = "pause" | "drain" | "resume" | "stop";
const may: Record<Action, readonly RunStatus[]> = {
  pause: ["preparing", "running"],
  drain: ["preparing", "running"],
  resume: ["paused", "pausing"],
  stop: ["queued", "preparing", "running", "pausing", "paused"],
};
const ended: readonly RunStatus[] = ["stopped", "completed", "failed"];
/** An ended evaluation is taken up again for what it did not score; one that completed has scored what it could. */
const mayGoOn = (run: RunDetail): boolean =>
  run.kind === "evaluate" && (run.status === "stopped" || run.status === "failed");

export function RunHeader({
  run,
  frozen,
  onUnfreeze,
}: {
  run: RunDetail;
  frozen: boolean;
  onUnfreeze(): void;
}): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const [stopping, setStopping] = useState(false);
  const [draining, setDraining] = useState(false);
  const [changing, setChanging] = useState(false);
  const act = useMutation(
    trpc.runs.act.mutationOptions({
      onSettled: () => client.invalidateQueries(trpc.runs.get.queryFilter({ runId: run.runId })),
    }),
  );
  const can = (action: Action) =>
    action === "drain"
      ? may.drain.includes(run.status) && !run.draining
      : may[action].includes(run.status) || (action === "resume" && (run.draining || mayGoOn(run)));
  return (
    <header className="flex flex-col gap-2 px-4 pt-3 pb-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <h1 className="max-w-full truncate text-xl font-semibold" title={run.name}>
          {run.name}
        </h1>
        <CopyText text={run.runId}>{shortenId(run.runId)}</CopyText>
        {run.config.model.startFrom && <Origin start={run.config.model.startFrom} />}
        {run.tags.map((tag) => (
          <Chip key={tag} className="max-w-[120px]">
            <span className="truncate">{tag}</span>
          </Chip>
        ))}
        {frozen && (
          <button type="button" onClick={onUnfreeze} title="The page stands still; press z or click to go on">
            <Chip tone="paused">frozen</Chip>
          </button>
        )}
        <div className="ml-auto flex flex-wrap gap-3">
          {!ended.includes(run.status) && <Button onClick={() => setChanging(true)}>Change dispatch</Button>}
          {can("pause") && (
            <Button disabled={act.isPending} onClick={() => act.mutate({ runId: run.runId, action: "pause" })}>
              Pause run
            </Button>
          )}
          {can("drain") && (
            <Button disabled={act.isPending} onClick={() => setDraining(true)}>
              Drain run
            </Button>
          )}
          {can("resume") && (
            <Button disabled={act.isPending} onClick={() => act.mutate({ runId: run.runId, action: "resume" })}>
              Resume run
            </Button>
          )}
          {can("stop") && (
            <Button disabled={act.isPending} onClick={() => setStopping(true)}>
              Stop run
            </Button>
          )}
          {ended.includes(run.status) && (
            <ButtonLink href={`/runs/new?from=${run.runId}`}>Relaunch with changes</ButtonLink>
          )}
        </div>
      </div>
      <StateLine run={run} />
      {act.error && <ErrorBanner error={act.error} doing="change this run" />}
      {draining && (
        <DoingDialog
          title={`Drain ${run.name}?`}
          action="Drain run"
          pending={act.isPending}
          error={act.error}
          doing="drain this run"
          onConfirm={() => act.mutate({ runId: run.runId, action: "drain" }, { onSuccess: () => setDraining(false) })}
          onClose={() => setDraining(false)}
        >
          <p>{drainWords}</p>
        </DoingDialog>
      )}
      {changing && <DispatchDialog run={run} onClose={() => setChanging(false)} />}
      <ConfirmDialog
        open={stopping}
        onOpenChange={setStopping}
        title={`Stop ${run.name}?`}
        action="Stop run"
        onConfirm={() => act.mutate({ runId: run.runId, action: "stop" })}
      >
        <StopWarning run={run} />
      </ConfirmDialog>
    </header>
  );
}

/** Whose weights it began with. */
function Origin({ start }: { start: NonNullable<RunDetail["config"]["model"]["startFrom"]> }): JSX.Element {
  return (
    <Link
      href={`/runs/${start.run}?tab=checkpoints`}
      title={`Began with weights of run ${start.run}`}
      className="num text-sm whitespace-nowrap text-accent-text hover:underline"
    >
      from {shortenId(start.run)}
      {start.version !== null && ` v${start.version}`}
    </Link>
  );
}

function StopWarning({ run }: { run: RunDetail }): JSX.Element {
  const open = run.counts.byStage.reduce((sum, each) => sum + (each.state === "settled" ? 0 : each.count), 0);
  const saved = run.checkpoints.reduce((newest, each) => Math.max(newest, each.version), -1);
  if (run.kind === "evaluate")
    return (
      <p>
        {open > 0 ? `${formatCount(open)} rollouts in flight are cancelled. ` : ""}What is scored stays. A stopped
        evaluation can be resumed: it goes on with what it did not score.
      </p>
    );
  return (
    <p>
      A stopped run can't be resumed, only set back to a checkpoint.{" "}
      {open > 0 ? `${formatCount(open)} rollouts in flight are cancelled and never trained. ` : ""}
      {run.step === 0
        ? "No update was made yet."
        : saved < 0
          ? "There is no checkpoint yet: the trained weights are lost."
          : run.step > saved
            ? `Weights of ${formatCount(run.step - saved)} updates after checkpoint ${saved} are lost.`
            : `Checkpoint ${saved} keeps the newest weights.`}{" "}
      Rows, metrics and trajectories stay. To go on later, pause instead.
    </p>
  );
}

function StateLine({ run }: { run: RunDetail }): JSX.Element {
  const now = useNow();
  const over = ended.includes(run.status);
  const took = run.startedAt && run.endedAt ? Date.parse(run.endedAt) - Date.parse(run.startedAt) : null;
  const open = run.openSteps[0];
  return (
    <div className="flex min-h-5 flex-wrap items-center gap-x-4 gap-y-1 text-g8">
      <span className="inline-flex items-center gap-2" title={`since ${formatUtc(run.statusSince)}`}>
        <StatusMark status={run.status} withLabel />
        <span className="figures text-sm text-g7">
          {over
            ? took !== null && `after ${formatDuration(took)}`
            : now > 0 && `for ${formatDuration(Math.max(0, now - Date.parse(run.statusSince)))}`}
        </span>
      </span>
      {run.draining && (
        <Chip tone="paused" title={drainWords}>
          draining
        </Chip>
      )}
      {run.reason && (
        <span
          data-testid="run-reason"
          className={run.status === "failed" ? "text-failed" : undefined}
          title={run.reason}
        >
          {run.reason}
        </span>
      )}
      {run.kind === "train" && (
        <span className="inline-flex items-center gap-2">
          <progress
            aria-label="Steps done"
            value={run.step}
            max={Math.max(1, run.steps)}
            className="h-1 w-24 overflow-hidden rounded-full [&::-webkit-progress-bar]:bg-g3 [&::-webkit-progress-value]:bg-g8"
          />
          <span className="figures text-sm">
            step <span data-testid="run-step">{formatCount(run.step)}</span>
            <span className="text-g7">/{formatCount(run.steps)}</span>
          </span>
        </span>
      )}
      {run.secondsPerStep !== null && (
        <span className="figures text-sm text-g7">{formatDuration(run.secondsPerStep * 1000)} a step</span>
      )}
      {run.status === "running" && run.etaSeconds !== null && run.etaSeconds > 0 && (
        <span className="figures text-sm text-g7">about {formatDuration(run.etaSeconds * 1000)} left</span>
      )}
      {run.cost && <CostLine cost={run.cost} budget={run.config.budget.cost} />}
      {!over && open && (
        <span className="figures text-sm text-g7">
          {open.purpose === "evaluate"
            ? "evaluating version"
            : open.state === "updating"
              ? "updating, step"
              : "gathering step"}{" "}
          {open.step}: {formatCount(open.settled)}/{formatCount(open.rollouts)} rollouts settled
        </span>
      )}
    </div>
  );
}
