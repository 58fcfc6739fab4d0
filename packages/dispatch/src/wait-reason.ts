/** Why a rollout that waits is not admitted: a word for the page's filter, a sentence for people. */

/**
 * `step`: its step takes no rollouts now. `run`: the run itself does not run. `grant`: other runs hold the pool. The slots and
 * `sandbox`: what the run was granted is in use. `bound`: the run's own bound of the stage.
 */
export const waitCauses = [
  "run",
  "step",
  "held",
  "draining",
  "back-off",
  "model",
  "bound",
  "start-rate",
  "grant",
  "sandbox",
  "init-slot",
  "run-slot",
  "grade-slot",
  "gpu",
] as const;
export type WaitCause = (typeof waitCauses)[number];

export interface WaitReason {
  readonly waitsFor: WaitCause;
  readonly detail: string;
  /** When it is over at the latest, milliseconds of the database's clock; absent = nobody knows. */
  readonly until?: number;
}
