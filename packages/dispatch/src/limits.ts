/** Bounds of the planner: nothing is tried without end. */

/** A run fails when preparing its model failed more often than this in a row. */
export const maxPrepareFailures = 5;
/** A run fails when one update failed more often than this. */
export const maxUpdateFailures = 5;
/** A run fails when this many train steps in a row had nothing to train. */
export const maxUnscoredSteps = 3;
/** An asynchronous train step ends without an update after this many batches of groups that could not be trained. */
export const maxBarrenBatches = 3;
/** Under group policy `wait` a rollout gets this many times the attempts it gets otherwise. */
export const waitFactor = 3;
/** The worker ends an overlong stage itself; the planner steps in this much later, milliseconds. */
export const deadlineGraceMs = 15_000;
