/** Trainers that Rolldeck launches with a run: where each is, and what of it people see. */
import { z } from "zod";

/** Backends whose trainer is launched with the run. */
export const launchedBackends = ["skyrl-train", "verl"] as const;

/**
 * `submitting`: on its way to the cluster, or the cluster does not answer. `pending`: it waits for room there. `lost`: the cluster no
 * longer knows it.
 */
export const trainerJobStates = ["submitting", "pending", "running", "succeeded", "failed", "stopped", "lost"] as const;
export type TrainerJobState = (typeof trainerJobStates)[number];

export const endedTrainerJobStates = ["succeeded", "failed", "stopped", "lost"] as const satisfies TrainerJobState[];
const ends: readonly TrainerJobState[] = endedTrainerJobStates;
export const isLaunchedBackend = (name: string): boolean => launchedBackends.some((launched) => launched === name);
export const isEndedTrainerJob = (state: TrainerJobState): boolean => ends.includes(state);

export const trainerJobEdges: Record<TrainerJobState, readonly TrainerJobState[]> = {
  submitting: ["pending", "running", ...ends],
  pending: ["running", ...ends],
  running: ends,
  succeeded: [],
  failed: [],
  stopped: [],
  lost: [],
};

/** Newest attempt first. */
export const LaunchedTrainer = z.object({
  runId: z.string(),
  attempts: z.array(
    z.object({
      attempt: z.int(),
      /** Its name in the operator's list. */
      trainer: z.string(),
      /** As the cluster knows it. */
      submissionId: z.string(),
      state: z.enum(trainerJobStates),
      message: z.string().nullable(),
      /** End of what it printed, at most 16 KiB. */
      logTail: z.string(),
      submittedAt: z.string(),
      startedAt: z.string().nullable(),
      endedAt: z.string().nullable(),
    }),
  ),
});
export type LaunchedTrainer = z.infer<typeof LaunchedTrainer>;
