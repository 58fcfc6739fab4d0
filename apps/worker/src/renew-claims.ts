/** Renews all claims of a process: its rollouts in one statement, its training jobs (a handful) each in its own. */
import type { Pool } from "@rolldeck/db/connect";
import { renewLeases } from "@rolldeck/db/hot/renew-leases";
import { renewPrepare } from "@rolldeck/db/training/claim-prepare";
import { renewUpdate } from "@rolldeck/db/training/claim-update";
import type { WorkerClaim } from "./worker-context.ts";

/** @returns those that are no longer ours */
export async function renewClaims(
  pool: Pool,
  workerId: string,
  claims: readonly WorkerClaim[],
): Promise<readonly WorkerClaim[]> {
  const rollouts = claims.filter((claim) => claim.kind === "rollout");
  const [lostRollouts, trainLost] = await Promise.all([
    rollouts.length === 0 ? [] : renewLeases(pool, workerId, rollouts),
    Promise.all(claims.map(async (claim) => ((await isHeld(pool, claim)) ? null : claim))),
  ]);
  const keys = new Set(lostRollouts.map(({ rolloutId, claim }) => `${rolloutId}/${claim}`));
  const lost = rollouts.filter(({ rolloutId, claim }) => keys.has(`${rolloutId}/${claim}`));
  return [...lost, ...trainLost.filter((claim) => claim !== null)];
}

/** Of training claims; those of rollouts are renewed together. */
async function isHeld(pool: Pool, claim: WorkerClaim): Promise<boolean> {
  if (claim.kind === "prepare") return renewPrepare(pool, claim.runId, claim.claim);
  if (claim.kind === "update") return renewUpdate(pool, claim.stepId, claim.claim);
  return true;
}
