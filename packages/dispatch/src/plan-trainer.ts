/**
 * What to do about the trainer that a run was to be launched with. Pure. A job is submitted once per attempt; when one ends before the
 * run does, the run pauses, and going on is the next attempt.
 */
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import { isEndedTrainerJob, type TrainerJobState } from "@rolldeck/contracts/trainer-jobs";

export interface TrainerScene {
  readonly status: RunStatus;
  /** The newest one; null: none was launched yet. */
  readonly job: { readonly attempt: number; readonly state: TrainerJobState } | null;
}

export type TrainerAction =
  | { readonly do: "launch"; readonly attempt: number }
  /** Send it again: nobody knows whether the cluster has it. */
  | { readonly do: "submit" }
  | { readonly do: "look" }
  | { readonly do: "stop" };

const over: readonly RunStatus[] = ["stopping", "stopped", "failed"];
const goesOn: readonly RunStatus[] = ["preparing", "running"];

/** @returns null where nothing is to be done */
export function planTrainer({ status, job }: TrainerScene): TrainerAction | null {
  if (job === null || isEndedTrainerJob(job.state))
    return goesOn.includes(status) ? { do: "launch", attempt: (job?.attempt ?? 0) + 1 } : null;
  if (over.includes(status)) return { do: "stop" };
  return job.state === "submitting" && goesOn.includes(status) ? { do: "submit" } : { do: "look" };
}

/**
 * The end of a job, told to its run before it is written down: so that an end that was seen and not noted is seen again.
 * @returns whether the run is to pause; null: later, for a queued run can't
 */
export function pausesAtEnd(status: RunStatus): boolean | null {
  if (status === "queued") return null;
  return goesOn.includes(status);
}
