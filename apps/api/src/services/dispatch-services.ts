/** What people change of a run's dispatch while it runs. Rows and events are written here; the planner does what they say. */
import type { PartAction, PartReply, Quotas } from "@rolldeck/contracts/api/dispatch";
import { ConflictError, InputError } from "@rolldeck/contracts/errors";
import { cancelRollout } from "@rolldeck/db/hot/cancel-rollout";
import { cancelStep } from "@rolldeck/db/hot/cancel-step";
import { holdPart, type Part } from "@rolldeck/db/hot/hold-part";
import { setAsideGroups } from "@rolldeck/db/hot/set-aside";
import { readDispatched } from "@rolldeck/db/reads/read-dispatched";
import { readGroupPlace } from "@rolldeck/db/reads/read-group-place";
import { readPart } from "@rolldeck/db/reads/read-part";
import { readPoolSettings, readQuotas, setPool, setQuota } from "@rolldeck/db/reconcile/quotas";
import { changeDispatcher } from "@rolldeck/db/runs/change-dispatcher";
import type { Pool } from "pg";
import type { DispatchServices } from "../services.ts";
import { refusedByBackend } from "./catalogue.ts";
import { changeIssues } from "./dispatcher-issues.ts";

export interface DispatchServiceOptions {
  readonly pool: Pool;
  /** Tells the run's planner. Never fails: the row is written, and the sweep finds a run nobody was told of. */
  readonly wake: (runId: string) => Promise<void>;
}

interface Asked {
  readonly part: Part;
  readonly id: string;
  readonly action: PartAction;
  readonly reason: string | null;
  readonly by: string;
}

export function createDispatchServices({ pool, wake }: DispatchServiceOptions): DispatchServices {
  const act = async (asked: Asked): Promise<PartReply> => {
    const { part, id } = asked;
    const { runId, cancelled } = asked.action === "cancel" ? await cancel(pool, asked) : await hold(pool, asked);
    await wake(runId);
    return { part, id, ...(await readPart(pool, part, id)), cancelled };
  };
  const wakeAll = async (runIds: readonly string[]): Promise<Quotas> => {
    for (const runId of runIds) await wake(runId);
    return quotas(pool);
  };
  return {
    async change({ runId, ...change }, by) {
      const { config } = await readDispatched(pool, runId);
      const issues = changeIssues(config, change, refusedByBackend);
      if (issues.length > 0) throw new InputError(issues);
      const now = await changeDispatcher(pool, runId, change, by);
      await wake(runId);
      return { runId, ...now };
    },
    actOnStep: ({ stepId, action, reason }, by) =>
      act({ part: "step", id: stepId, action, reason: reason ?? null, by }),
    actOnGroup: ({ groupId, action, reason }, by) =>
      act({ part: "group", id: groupId, action, reason: reason ?? null, by }),
    actOnRollout: ({ rolloutId, action, reason }, by) =>
      act({ part: "rollout", id: rolloutId, action, reason: reason ?? null, by }),
    quotas: () => quotas(pool),
    setQuota: async (quota) => wakeAll(await setQuota(pool, quota)),
    setPool: async ({ resource, ...change }) => wakeAll(await setPool(pool, resource, change)),
  };
}

async function hold(pool: Pool, { part, id, action, by }: Asked): Promise<{ runId: string; cancelled: number }> {
  const { runId } = await holdPart(pool, { part, id, held: action === "hold", by });
  return { runId, cancelled: 0 };
}

async function cancel(pool: Pool, { part, id, reason, by }: Asked): Promise<{ runId: string; cancelled: number }> {
  const words = `cancelled by ${by}${reason === null ? "" : `: ${reason}`}`;
  if (part === "step") return cancelStep(pool, id, words);
  if (part === "rollout") return cancelRollout(pool, id, words);
  return cancelGroup(pool, id, words);
}

/** A group may move to the next step between our look and our write. */
const maxRaces = 5;

async function cancelGroup(pool: Pool, groupId: string, reason: string): Promise<{ runId: string; cancelled: number }> {
  for (let race = 0; ; race++) {
    const { runId, stepId, state, setAside } = await readGroupPlace(pool, groupId);
    if (setAside !== null || state === "cancelled") return { runId, cancelled: 0 };
    const { made, cancelled } = await setAsideGroups(pool, runId, [{ groupId, stepId, as: "cancelled", reason }]);
    if (made.length === 1) return { runId, cancelled };
    if (state === "gathering" && race < maxRaces) continue;
    throw new ConflictError(
      state === "gathering"
        ? "The group's step is being changed at this very moment: ask again."
        : `The group's step is ${state}: the group can't be cancelled any more.`,
    );
  }
}

async function quotas(pool: Pool): Promise<Quotas> {
  return { quotas: await readQuotas(pool), pools: await readPoolSettings(pool) };
}
