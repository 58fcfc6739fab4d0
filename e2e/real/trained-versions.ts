/** What every training test wants to see of versions: each step sampled by the one before it, and each another one's weights. */
import type { Pool } from "pg";
import { expect } from "vitest";
import { largestDifference } from "./exported-model.ts";

/** Turns of step n record version n − 1, and no other. */
export async function expectSampledByVersionBefore(pool: Pool, runId: string, steps: number): Promise<void> {
  const { rows } = await pool.query(
    `select distinct s.step, t.policy_version as version from steps s join rollouts r on r.step_id = s.id
       join transitions t on t.rollout_id = r.id and t.attempt = r.attempt where s.run_id = $1 order by 1`,
    [runId],
  );
  expect(rows).toEqual(Array.from({ length: steps }, (_, at) => ({ step: at + 1, version: at })));
}

/** Each version's weights differ from those before it, and by no more than a step can. @param versions oldest first */
export function expectWeightsChanged(versions: readonly Map<string, Float32Array>[]): void {
  for (const [at, version] of versions.slice(1).entries()) {
    const change = largestDifference(versions[at] ?? new Map(), version);
    expect(change, `version ${at + 1}`).toBeGreaterThan(1e-5);
    expect(change).toBeLessThan(1);
  }
}
