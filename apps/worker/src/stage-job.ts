/**
 * What the three stages share: claim → act → edge. Nothing is done before the claim, every write carries it, and what stops the
 * work (fencing, a lost lease, the run's end, a deadline, shutdown) arrives as one AbortSignal.
 */
import type { Ending } from "@rolldeck/contracts/endings";
import { type Boundary, BoundaryError, FencedError } from "@rolldeck/contracts/errors";
import type { StageJob } from "@rolldeck/contracts/jobs";
import type { Stage } from "@rolldeck/contracts/lifecycle";
import { isLastingSandboxFailure } from "@rolldeck/contracts/ports/sandbox";
import { type ClaimedStage, claimStage } from "@rolldeck/db/hot/claim-stage";
import type { EdgeEntry } from "@rolldeck/db/hot/entries";
import { abortOf, StageAbort } from "./stage-abort.ts";
import { sleep } from "./wait-for.ts";
import type { WorkerContext } from "./worker-context.ts";

export type EdgeMove = EdgeEntry["to"];
/** Acts on a claimed stage and says where the rollout goes. Must end soon after the signal aborts. */
export type StageWork = (claimed: ClaimedStage, signal: AbortSignal) => Promise<EdgeMove>;

export async function stageJob(context: WorkerContext, job: StageJob, work: StageWork): Promise<void> {
  // A job taken while stopping is left: its row is still queued and will be delivered elsewhere.
  if (context.stopping.aborted) return;
  const asOf = context.runs.now();
  const claimed = await claimStage(context.pool, { ...job, workerId: context.workerId });
  if (claimed === null) {
    context.measures.lateDeliveries.inc({ stage: job.stage });
    return;
  }
  context.runs.learn(claimed.runId, claimed.serving, asOf);
  const key = `${job.rolloutId}/${job.attempt}/${claimed.claim}`;
  const lease = { kind: "rollout", rolloutId: job.rolloutId, attempt: job.attempt, claim: claimed.claim } as const;
  const held = context.leases.hold(key, claimed.runId, lease);
  const deadline = setTimeout(() => held.abort(deadlineAbort(claimed)), leftMs(context, claimed));
  context.measures.activeStages.inc({ stage: job.stage });
  try {
    const move = await work(claimed, held.signal).catch((error: unknown) =>
      moveAfter(context, job, claimed, error, held.signal),
    );
    if (move !== null) await writeEdge(context, job, claimed, move, held.signal);
  } finally {
    clearTimeout(deadline);
    held.release();
    context.measures.activeStages.dec({ stage: job.stage });
    context.requestReconcile(claimed.runId);
  }
}

const stageTimeoutMs = (claimed: ClaimedStage): number => claimed.config.dispatcher.stageTimeoutMs[claimed.stage];

/** Timers take at most 2^31 − 1 ms. */
function leftMs(context: WorkerContext, claimed: ClaimedStage): number {
  const left = claimed.stageStartedAtMs + stageTimeoutMs(claimed) - context.databaseNow();
  return Math.min(Math.max(left, 0), 2 ** 31 - 1);
}

const deadlineAbort = (claimed: ClaimedStage): StageAbort =>
  new StageAbort("deadline", `the ${claimed.stage} stage passed its limit of ${stageTimeoutMs(claimed) / 1000} s`);

const endingOf: Record<Boundary, Ending> = {
  policy: "infrastructure",
  tool: "infrastructure",
  sandbox: "sandbox_lost",
  verifier: "verifier_error",
  "model-server": "model_server",
  infrastructure: "infrastructure",
};

/** The edge that gives the stage back after an error; null when this worker may write nothing more. */
function moveAfter(
  context: WorkerContext,
  job: StageJob,
  claimed: ClaimedStage,
  error: unknown,
  signal: AbortSignal,
): EdgeMove | null {
  const abort = abortOf(signal) ?? (error instanceof StageAbort ? error : null);
  if (error instanceof FencedError || abort?.kind === "fenced" || abort?.kind === "run-ended") return null;
  if (abort?.kind === "hand-back") return { move: "release", reason: abort.message, failure: "none" };
  const cause = abort ?? error;
  context.log.warn({ ...job, claim: claimed.claim, err: cause }, "stage failed");
  context.measures.stageFailures.inc({ stage: claimed.stage });
  return failedMove(claimed.stage, cause);
}

/**
 * A failure is never a reward: it is counted on the rollout and the planner decides what follows. A sandbox that can't be had at all
 * leaves nothing to decide: no worker, no other attempt and no other grading would get it.
 */
export function failedMove(stage: Stage, error: unknown): EdgeMove {
  if (isLastingSandboxFailure(error)) return refusedMove(error);
  const boundary = error instanceof BoundaryError ? error.boundary : "infrastructure";
  const reason = (error instanceof Error ? error.message : String(error)).slice(0, 480);
  if (stage === "evaluate") return { move: "release", reason, failure: "evaluate" };
  return { move: "release", reason, failure: "infrastructure", ending: endingOf[boundary] };
}

const refusedMove = ({ message }: BoundaryError): EdgeMove => ({
  move: "settle",
  outcome: "failed",
  ending: "sandbox_refused",
  reason: message.slice(0, 480),
  reward: null,
  rewardParts: {},
  success: null,
});

/**
 * Tried again while the database is away: if an earlier try was committed after all, the claim is spent and the next one
 * is fenced, which is as good.
 */
async function writeEdge(
  context: WorkerContext,
  job: StageJob,
  claimed: ClaimedStage,
  to: EdgeMove,
  signal: AbortSignal,
): Promise<void> {
  const { runId, claim } = claimed;
  const { rolloutId, attempt, stage } = job;
  for (let tries = 0; ; tries++) {
    try {
      await context.writer.write({ kind: "edge", runId, rolloutId, attempt, claim, stage, to });
      return;
    } catch (error) {
      if (error instanceof FencedError) return;
      if (tries >= 40 || abortOf(signal)?.kind === "fenced") throw error;
      context.log.warn({ rolloutId, err: error }, "edge not written yet");
      await sleep(250);
    }
  }
}
