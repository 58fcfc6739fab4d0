/** One rollout that is given up by hand. Its worker is fenced by the claim; turns that are committed stay readable. */
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { rolloutOutcomes, rolloutStates, stages } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { z } from "zod";
import { moveRollouts } from "./move-rollouts.ts";

const Row = z.object({
  runId: z.string(),
  attempt: z.int(),
  stage: z.enum(stages),
  state: z.enum(rolloutStates),
  claim: z.int(),
  outcome: z.enum(rolloutOutcomes).nullable(),
});
/** Between our look and our write it may move on; then it is looked at again. */
const maxRaces = 10;

/**
 * One that was cancelled before stays so.
 * @throws NotFoundError, ConflictError for one that is over otherwise
 */
export async function cancelRollout(
  pool: pg.Pool,
  rolloutId: string,
  reason: string,
): Promise<{ runId: string; cancelled: number }> {
  for (let race = 0; ; race++) {
    const { rows } = await pool.query(
      `select run_id as "runId", attempt, stage, state, claim, outcome from rollouts where id = $1`,
      [rolloutId],
    );
    if (rows.length === 0) throw new NotFoundError("rollout", rolloutId);
    const { runId, outcome, ...seen } = Row.parse(rows[0]);
    if (outcome === "cancelled") return { runId, cancelled: 0 };
    if (seen.state === "settled") throw new ConflictError(`The rollout is ${outcome}: it can't be cancelled any more.`);
    const settle = { move: "settle", outcome: "cancelled", ending: "cancelled", reason } as const;
    const made = await moveRollouts(pool, runId, [{ ...settle, seen: { rolloutId, ...seen } }]);
    if (made.length === 1) return { runId, cancelled: 1 };
    if (race >= maxRaces) throw new ConflictError("The rollout moves on too fast to be cancelled: ask again.");
  }
}
