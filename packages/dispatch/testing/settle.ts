/** The end of a rollout of the little world: its leases come back. */
import type { RolloutRow } from "./world-rows.ts";

export function settle(
  rollout: RolloutRow,
  end: { readonly outcome: RolloutRow["outcome"]; readonly reward: number | null; readonly at: number },
): void {
  const { outcome, reward, at } = end;
  Object.assign(rollout, {
    state: "settled",
    outcome,
    reward,
    settledAt: at,
    leases: [],
    leaseUntil: null,
    alive: false,
  });
  rollout.settledTimes += 1;
}
