/** Warns who asks for workers that the fleet can't give now, in the planner's own words of what they would wait for. */
import type { ConfigCheck } from "@rolldeck/contracts/api/runs";
import type { FleetDemand, FleetReason, FleetSnapshot, WorkerSnapshot } from "@rolldeck/contracts/fleet";
import { readFleet } from "@rolldeck/db/fleet/read-fleet";
import { readRunFiles } from "@rolldeck/db/fleet/readers";
import { workersOf } from "@rolldeck/db/fleet/want-workers";
import { planPlacement } from "@rolldeck/fleet/plan/plan-placement";
import type { Pool } from "pg";

/** A check that passed, with the warning where one is due: the run may be launched all the same. */
export async function withFleetWarning(check: ConfigCheck, pool: Pool): Promise<ConfigCheck> {
  const demand = check.config?.backend.fleet ?? null;
  if (demand === null) return check;
  const startFrom = check.config?.model.startFrom ?? null;
  const files = startFrom === null ? null : await readRunFiles(pool, startFrom.run);
  const reason = reasonToWait((await readFleet(pool)).snapshot, demand, files?.host ?? null);
  if (reason === null) return check;
  const message = `on the fleet as it is now a worker of this run ${reason.message} (${reason.code})`;
  return { ...check, warnings: [...check.warnings, { path: "backend.fleet", message, fix: reason.remedy }] };
}

/** What a run would be told that asked now; null: it would get its workers. */
function reasonToWait(fleet: FleetSnapshot, demand: FleetDemand, filesOn: string | null): FleetReason | null {
  const { device, memoryMb, priority } = demand;
  const asked = workersOf(demand).map(
    ({ role, devices }, at): WorkerSnapshot => ({
      ...{
        id: `asked-${at}`,
        runId: "asked",
        role,
        device,
        devices,
        memoryMb,
        priority,
        wanted: true,
        state: "queued",
      },
      ...{ host: null, filesOn, reason: null, queuedAt: fleet.now, notBefore: null, failures: 0 },
    }),
  );
  const ids = new Set(asked.map(({ id }) => id));
  const actions = planPlacement({ ...fleet, workers: [...fleet.workers, ...asked] });
  const told = actions.find((action) => ids.has(action.workerId) && action.type !== "place");
  return told !== undefined && "reason" in told ? told.reason : null;
}
