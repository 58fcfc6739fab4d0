/** Leases of claimed stages, by the database's clock. */
import { leaseMs } from "@rolldeck/contracts/jobs";
import type pg from "pg";
import { asBoundaryError } from "../database-error.ts";

export interface StageClaim {
  readonly rolloutId: string;
  readonly attempt: number;
  readonly claim: number;
}

// Rows are locked by id first: two statements that take the same rows in another order would wait for each other.
const sql = `
with holder as materialized (
  select id from rollouts where id = any($1::text[]) order by id for no key update
)
update rollouts r set lease_until = now() + $4::int * interval '1 millisecond'
from unnest($1::text[], $2::int[], $3::bigint[]) as c (rollout_id, attempt, claim)
where r.id = c.rollout_id and r.attempt = c.attempt and r.claim = c.claim and r.state = 'active' and r.worker_id = $5
  and (select count(*) from holder) > 0
returning r.id, r.attempt, r.claim`;

/**
 * Renews all of a worker's claims in one statement.
 * @returns those that are lost: abort them and write nothing more
 * @throws BoundaryError("infrastructure") when the database is away: nothing is known of the claims
 */
export async function renewLeases(
  pool: pg.Pool,
  workerId: string,
  claims: readonly StageClaim[],
): Promise<readonly StageClaim[]> {
  if (claims.length === 0) return [];
  const values = [
    claims.map((claim) => claim.rolloutId),
    claims.map((claim) => claim.attempt),
    claims.map((claim) => claim.claim),
    leaseMs,
    workerId,
  ];
  try {
    const { rows } = await pool.query<{ id: string; attempt: number; claim: number }>({
      name: "renew-leases",
      text: sql,
      values,
    });
    const renewed = new Set(rows.map((row) => `${row.id} ${row.attempt} ${row.claim}`));
    return claims.filter((claim) => !renewed.has(`${claim.rolloutId} ${claim.attempt} ${claim.claim}`));
  } catch (cause) {
    throw asBoundaryError(cause, "the leases were not renewed");
  }
}
