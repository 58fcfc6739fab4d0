/**
 * Rollouts that run far longer than earlier ones of their instance are begun anew, for a second try is likely to be done sooner.
 * Invariants: once per rollout, so it counts as one of its tries; only while a run slot is idle, so nobody waits for it.
 */
import type { Action, RolloutSnapshot } from "@rolldeck/contracts/plan";
import { ExpectedTimes } from "./expected-time.ts";
import type { Facts } from "./facts.ts";

/**
 * @param idleRunSlots run slots that nothing takes
 * @param touched rollouts that another action of this plan moves
 */
export function restartTail(facts: Facts, idleRunSlots: number, touched: ReadonlySet<string>): Action[] {
  const { now, draining } = facts.snapshot;
  if (idleRunSlots <= 0 || draining) return [];
  return tail(facts)
    .filter(({ rollout, dueAt }) => dueAt <= now && !touched.has(rollout.rolloutId))
    .sort((a, b) => a.dueAt - b.dueAt)
    .slice(0, idleRunSlots)
    .map(({ rollout: { rolloutId, attempt, stageStartedAt }, expectedMs }) => {
      const times = ((now - (stageStartedAt ?? now)) / expectedMs).toFixed(1);
      const reason = `restarted: it ran ${times} times as long as its instance took before`;
      return { do: "retry", rolloutId, attempt, notBefore: now, reason };
    });
}

/** When rollouts under way become due for a restart, milliseconds. */
export const restartTimes = (facts: Facts): number[] => tail(facts).map(({ dueAt }) => dueAt);

interface Running {
  readonly rollout: RolloutSnapshot;
  readonly expectedMs: number;
  readonly dueAt: number;
}

function tail({ snapshot, unsettled }: Facts): Running[] {
  const factor = snapshot.config.dispatcher.restartTail;
  if (factor === null) return [];
  const expected = new ExpectedTimes(snapshot);
  return unsettled.flatMap((rollout): Running[] => {
    const { stage, state, attempt, firstAttempt = 1, groupId, stageStartedAt } = rollout;
    if (stage !== "run" || state !== "active" || attempt !== firstAttempt || stageStartedAt === null) return [];
    const expectedMs = expected.ofInstance(groupId, "run");
    if (expectedMs === null || expectedMs <= 0) return [];
    return [{ rollout, expectedMs, dueAt: stageStartedAt + factor * expectedMs }];
  });
}
