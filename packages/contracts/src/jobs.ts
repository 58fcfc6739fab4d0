/** The job catalogue: queue jobs carry ids only; the row is read afresh by whoever takes the job. */
import { z } from "zod";
import { stages } from "./lifecycle.ts";

export const queueNames = ["control", "init-evaluate", "run", "train"] as const;
export type QueueName = (typeof queueNames)[number];

export const StageJob = z.object({
  runId: z.string(),
  rolloutId: z.string(),
  attempt: z.int().min(1),
  stage: z.enum(stages),
});
export type StageJob = z.infer<typeof StageJob>;

export const RunJob = z.object({ runId: z.string() });
export const StepJob = z.object({ runId: z.string(), stepId: z.string() });
export type RunJob = z.infer<typeof RunJob>;
export type StepJob = z.infer<typeof StepJob>;

export const jobs = {
  /** Bring a run up to its `wake`; deduplicated by run. */
  reconcile: { queue: "control", payload: RunJob },
  /** Init and evaluate stages. */
  stage: { queue: "init-evaluate", payload: StageJob },
  /** The turn loop. */
  "run-stage": { queue: "run", payload: StageJob },
  /** Create or re-adopt the run's model on its backend, warm start, first version serving. */
  prepare: { queue: "train", payload: RunJob },
  /** One optimizer update from a gathered step. */
  update: { queue: "train", payload: StepJob },
} as const satisfies Record<string, { queue: QueueName; payload: z.ZodType }>;
export type JobName = keyof typeof jobs;
export type JobPayload<N extends JobName> = z.infer<(typeof jobs)[N]["payload"]>;

/** Lease lengths and renewals, in milliseconds, by the database's clock. */
export const leaseMs = 15_000;
export const leaseRenewMs = 5_000;
export const sweepMs = 2_000;
export const maxInfrastructureAttempts = 3;
export const maxEvaluateAttempts = 3;
/** Deliveries of one attempt's stage before it counts as an infrastructure failure (a job that kills its worker). */
export const maxDeliveries = 8;
