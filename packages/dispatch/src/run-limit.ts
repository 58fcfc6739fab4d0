/** The run's limit of rollouts that sample at once, set anew where its config lets the engine decide. */
import type { Action } from "@rolldeck/contracts/plan";
import { adaptRunLimit, holdMs } from "./adaptive.ts";
import type { Facts } from "./facts.ts";
import { isInFlight } from "./rollout-state.ts";

/** Readings come without a wake: how often they are looked at, milliseconds. */
const lookMs = 5_000;

export function runLimit({ snapshot, unsettled }: Facts): Action[] {
  const { config, now, engine = null } = snapshot;
  const current = snapshot.runLimit ?? null;
  const from = current?.limit ?? null;
  if (!config.dispatcher.adaptive) {
    return from === null ? [] : [{ do: "set-run-limit", from, to: null, reason: "the run's bounds alone count again" }];
  }
  const inRun = unsettled.filter((rollout) => rollout.stage === "run" && isInFlight(rollout));
  const then = inRun.filter(({ stageStartedAt }) => (stageStartedAt ?? now) <= (engine?.at ?? 0));
  const change = adaptRunLimit({
    now,
    bound: config.dispatcher.bounds.run,
    current,
    engine,
    inRun: inRun.length,
    inRunThen: then.length,
  });
  return change === null ? [] : [{ do: "set-run-limit", from, ...change }];
}

/** When to look at the engine again, milliseconds; null = the limit is not adaptive. */
export function nextLookAt({ snapshot }: Facts): number | null {
  if (!snapshot.config.dispatcher.adaptive) return null;
  return Math.max(snapshot.now + lookMs, (snapshot.runLimit?.since ?? 0) + holdMs);
}
