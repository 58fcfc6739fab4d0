/** What a rollout's row says of it. */
import { endingRule } from "@rolldeck/contracts/endings";
import type { RolloutSnapshot } from "@rolldeck/contracts/plan";

/** In flight: a job is on its way or a worker acts. */
export const isInFlight = ({ state }: RolloutSnapshot): boolean => state === "queued" || state === "active";

/** Its reward counts: it was graded, and its ending belongs in the baseline. */
export const isScored = ({ outcome, ending, reward }: RolloutSnapshot): boolean =>
  outcome === "completed" &&
  reward !== null &&
  Number.isFinite(reward) &&
  (ending === null || endingRule(ending).inBaseline);

/** Nothing of it was ever started. */
export const isUntouched = ({ stage, state, attempt, firstAttempt = 1 }: RolloutSnapshot): boolean =>
  stage === "init" && state === "waiting" && attempt === firstAttempt;
