"use client";
/** The trainer that was launched with a run: where it is, why, and the end of what it printed. Other runs show nothing. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import { isEndedTrainerJob, isLaunchedBackend, type LaunchedTrainer } from "@rolldeck/contracts/trainer-jobs";
import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { join } from "../../design/join.ts";
import { visibleText } from "../../design/visible-text.ts";
import { unlessFrozen } from "./unless-frozen.ts";

export function TrainerPanel({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element | null {
  const trpc = useTRPC();
  const isLaunched = isLaunchedBackend(run.config.backend.name);
  const trainer = useQuery(
    trpc.driven.trainer.queryOptions(
      { runId: run.runId },
      {
        enabled: isLaunched ? unlessFrozen(frozen) : false,
        refetchInterval: ({ state }) => (isOver(run, state.data) ? false : 5_000),
      },
    ),
  );
  if (!isLaunched) return null;
  if (trainer.error) return <ErrorBanner error={trainer.error} doing="read the launched trainer" />;
  const [newest] = trainer.data?.attempts ?? [];
  return (
    <section aria-label="Launched trainer" className="mx-4 mt-3 shrink-0 text-sm">
      {newest === undefined ? (
        <p className="text-g7">The trainer is launched when the run is prepared.</p>
      ) : (
        <Attempt attempt={newest} />
      )}
    </section>
  );
}

/** A job may outlive its run for a while. */
function isOver(run: RunDetail, trainer: LaunchedTrainer | undefined): boolean {
  const [newest] = trainer?.attempts ?? [];
  return endedRunStatuses.includes(run.status) && (newest === undefined || isEndedTrainerJob(newest.state));
}

function Attempt({ attempt }: { attempt: LaunchedTrainer["attempts"][number] }): JSX.Element {
  const { trainer, state, message, submissionId, logTail } = attempt;
  const isBad = state === "failed" || state === "lost";
  return (
    <>
      <p className={join(isBad && "text-failed", "[overflow-wrap:anywhere]")}>
        {isBad && "▲ "}
        Trainer <b>{trainer}</b> {state}
        {attempt.attempt > 1 && `, attempt ${attempt.attempt}`}
        {message !== null && message !== "" && <span className="text-g7"> · {visibleText(message)}</span>}
      </p>
      <details>
        <summary className="cursor-pointer text-g7">End of its log · job {submissionId}</summary>
        <pre className="max-h-72 overflow-auto whitespace-pre-wrap rounded-md bg-g2 p-2 text-xs [overflow-wrap:anywhere]">
          {logTail === "" ? "Nothing printed yet." : logTail.split("\n").map(visibleText).join("\n")}
        </pre>
      </details>
    </>
  );
}
