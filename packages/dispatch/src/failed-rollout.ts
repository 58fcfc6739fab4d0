/**
 * What follows when a stage of a rollout failed: a new attempt, another grading, or the end. The table of endings says who may
 * try again; both kinds of tries are bounded, whatever fails.
 */
import { type Ending, endingRule } from "@rolldeck/contracts/endings";
import { maxEvaluateAttempts, maxInfrastructureAttempts } from "@rolldeck/contracts/jobs";
import type { Action, RolloutSnapshot } from "@rolldeck/contracts/plan";
import { backOffMs } from "./back-off.ts";
import type { Facts } from "./facts.ts";
import { waitFactor } from "./limits.ts";

const maxReasonLength = 480;

/** @param reason what happened, for people; the retry or the settled rollout keeps it */
export function afterFailure(facts: Facts, rollout: RolloutSnapshot, ending: Ending, reason: string): Action {
  const { rolloutId, attempt, firstAttempt = 1 } = rollout;
  const { now } = facts.snapshot;
  if (endingRule(ending).retry === "evaluate" && rollout.stage === "evaluate") {
    const failures = Math.max(rollout.evaluateFailures, 1);
    if (failures >= maxEvaluateAttempts * factor(facts, rollout)) return giveUp(rollout, ending, reason, failures);
    const notBefore = now + backOffMs(failures, rolloutId, ending);
    return { do: "regrade", rolloutId, attempt, notBefore, reason: cut(reason) };
  }
  // Since the first one, attempts are raised by retries only: their number bounds every failure, counted by a worker or not.
  const failures = Math.max(attempt - firstAttempt + 1, rollout.infrastructureFailures);
  if (failures >= maxInfrastructureAttempts * factor(facts, rollout)) return giveUp(rollout, ending, reason, failures);
  const notBefore = now + backOffMs(failures, rolloutId, ending);
  return { do: "retry", rolloutId, attempt, notBefore, reason: cut(reason) };
}

/** Policy `wait` tries harder for a full group; after that the group shrinks. */
function factor(facts: Facts, rollout: RolloutSnapshot): number {
  const waits = facts.snapshot.config.algorithm.groupPolicy === "wait" && facts.stepOf(rollout)?.purpose === "train";
  return waits ? waitFactor : 1;
}

function giveUp(rollout: RolloutSnapshot, ending: Ending, reason: string, failures: number): Action {
  const { rolloutId, attempt } = rollout;
  const tries = failures === 1 ? "one try" : `${failures} tries`;
  return {
    do: "settle",
    rolloutId,
    attempt,
    outcome: "failed",
    ending,
    reason: cut(`gave up after ${tries}: ${reason}`),
  };
}

/** At most `maxReasonLength` UTF-16 units, never half a character. */
const cut = (text: string): string => text.slice(0, maxReasonLength).replace(/[\uD800-\uDBFF]$/, "");
