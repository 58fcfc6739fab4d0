/**
 * What prepare and update share: the claim is held, and whatever ends the work is written as what it was. A graceful end
 * (shutdown, another job's turn) counts nothing; a failure is counted and the planner decides.
 */
import { BoundaryError, FencedError, InputError } from "@rolldeck/contracts/errors";
import { abortOf, StageAbort } from "../stage-abort.ts";
import type { WorkerClaim, WorkerContext } from "../worker-context.ts";

export interface TrainJob {
  readonly runId: string;
  readonly claim: WorkerClaim & { readonly kind: "prepare" | "update" };
  act(signal: AbortSignal): Promise<void>;
  /** `final`: what was asked for is wrong in itself; trying again can't help. */
  giveBack(reason: string, end: { readonly counted: boolean; readonly final: boolean }): Promise<void>;
}

export async function trainJob(context: WorkerContext, job: TrainJob): Promise<void> {
  const subject = job.claim.kind === "prepare" ? job.runId : job.claim.stepId;
  const held = context.leases.hold(`${job.claim.kind}/${subject}/${job.claim.claim}`, job.runId, job.claim);
  // A prepare is done again from the start anyway: it does not use up the time a stopping process has.
  const stop = () => held.abort(new StageAbort("hand-back", "the worker is stopping"));
  if (job.claim.kind === "prepare") context.stopping.addEventListener("abort", stop);
  try {
    await job.act(held.signal);
  } catch (error) {
    await giveBackAfter(context, job, error, held.signal);
  } finally {
    context.stopping.removeEventListener("abort", stop);
    held.release();
    context.requestReconcile(job.runId);
  }
}

async function giveBackAfter(
  context: WorkerContext,
  job: TrainJob,
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  const abort = abortOf(signal) ?? (error instanceof StageAbort ? error : null);
  if (error instanceof FencedError || abort?.kind === "fenced" || isFenced(error)) return;
  const graceful = abort?.kind === "hand-back" || abort?.kind === "run-ended";
  const cause = abort ?? error;
  const log = { runId: job.runId, job: job.claim.kind, err: cause };
  if (graceful) context.log.info(log, "training job handed back");
  else context.log.warn(log, "training job failed");
  const reason = cause instanceof Error ? cause.message : String(cause);
  const end = { counted: !graceful, final: cause instanceof InputError };
  // A lost claim here is the same end by another way.
  await job.giveBack(reason.slice(0, 480), end).catch((failure: unknown) => {
    if (!(failure instanceof FencedError)) throw failure;
  });
}

/** The model server refused an older holder. */
const isFenced = (error: unknown): boolean => error instanceof BoundaryError && error.code === "fenced";
