/** Why a run's rollouts wait, by stage, as the very plan that admits sees it; with what would let them on. Pure. */
import type { PoolInfo, WaitingNow } from "@rolldeck/contracts/api/schedule";
import { endedRunStatuses, type Stage } from "@rolldeck/contracts/lifecycle";
import type { ResourceCounts, RunSnapshot } from "@rolldeck/contracts/plan";
import { explain } from "@rolldeck/dispatch/explain";
import type { OwnCause } from "@rolldeck/dispatch/wait-reason";
import { engineNow } from "./engine-now.ts";
import { poolFix } from "./pool-fix.ts";

type Wait = WaitingNow["waits"][number];

/**
 * Those that the next plan admits are not among them.
 * @param pools as all runs share them
 */
export function waitingNow(snapshot: RunSnapshot, grants: ResourceCounts, pools: readonly PoolInfo[]): WaitingNow {
  const reasons = explain(snapshot, grants);
  const waits = new Map<string, Wait>();
  for (const { rolloutId, stage, readyAt } of snapshot.rollouts) {
    const reason = reasons.get(rolloutId);
    if (reason === undefined) continue;
    const key = `${stage} ${reason.waitsFor}`;
    const oldestAt = new Date(readyAt).toISOString();
    const known = waits.get(key);
    if (known) {
      known.count += 1;
      if (oldestAt < known.oldestAt) known.oldestAt = oldestAt;
    } else {
      const detail = `${reason.detail[0]?.toUpperCase() ?? ""}${reason.detail.slice(1)}.`;
      const fix =
        reason.resource === undefined
          ? fixes[reason.waitsFor](snapshot, stage)
          : poolFix(reason.resource, snapshot.runId, pools);
      waits.set(key, { stage, cause: reason.waitsFor, count: 1, oldestAt, detail, fix });
    }
  }
  return {
    runId: snapshot.runId,
    engine: engineNow(snapshot),
    waits: [...waits.values()].sort((a, b) => b.count - a.count),
  };
}

const nothing = () => null;

const fixes: Record<OwnCause, (snapshot: RunSnapshot, stage: Stage) => string | null> = {
  run: ({ status }) => (endedRunStatuses.includes(status) || status === "stopping" ? null : "Resume the run."),
  step: nothing,
  held: () => "Resume the step, group or rollout.",
  draining: () => "Resume the run.",
  "back-off": nothing,
  model: nothing,
  bound: boundFix,
  "start-rate": () => "Raise startsPerSecond.",
};

function boundFix({ config, runLimit, rollouts }: RunSnapshot, stage: Stage): string {
  const { name, bounds, adaptive } = config.dispatcher;
  if (stage === "run" && adaptive && runLimit && runLimit.limit < bounds.run)
    return "The engine's load bounds it: serve more replicas, or set adaptive to off.";
  const inStage = rollouts.filter(
    (each) => each.stage === stage && (each.state === "queued" || each.state === "active"),
  );
  // Policies that hold a run slot from the beginning let in as many as may run.
  const decisive = stage === "init" && inStage.length < bounds.init && name !== "pipeline" ? "run" : stage;
  return `Raise bounds.${decisive}, now ${bounds[decisive]}.`;
}
