/** A row of a sandbox in any state, made directly. */
import type { SandboxState } from "@rolldeck/contracts/api/sandboxes";
import type { SandboxPurpose } from "@rolldeck/contracts/events";
import type pg from "pg";
import { newId } from "../src/new-id.ts";

export async function seedSandbox(
  pool: pg.Pool,
  sandbox: {
    readonly runId: string;
    readonly rolloutId: string;
    readonly id?: string;
    readonly attempt?: number;
    readonly purpose?: SandboxPurpose;
    readonly state?: SandboxState;
    readonly runtime?: string;
    readonly image?: string | null;
    readonly network?: string;
    readonly reason?: string | null;
    readonly keepMinutes?: number;
    readonly phases?: Readonly<Record<string, number>>;
    /** Before now. */
    readonly createdSecondsAgo?: number;
  },
): Promise<string> {
  const id = sandbox.id ?? `sbx_${newId().slice(-20)}`;
  const state = sandbox.state ?? "open";
  await pool.query(
    `insert into sandboxes (id, run_id, rollout_id, attempt, purpose, claim, runtime, image, network, state, reason, keep_until,
       phases, created_at, opened_at, closed_at)
     values ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, now() + $11::float8 * interval '1 minute', $12,
       now() - $13::float8 * interval '1 second',
       case when $9 <> 'opening' then now() - ($13::float8 - 1) * interval '1 second' end,
       case when $9 in ('closed', 'lost') then now() end)`,
    [
      id,
      sandbox.runId,
      sandbox.rolloutId,
      sandbox.attempt ?? 1,
      sandbox.purpose ?? "agent",
      sandbox.runtime ?? "docker",
      sandbox.image === undefined ? "example:latest" : sandbox.image,
      sandbox.network ?? "none",
      state,
      sandbox.reason ?? null,
      sandbox.keepMinutes ?? null,
      sandbox.phases ?? { open: 120 },
      sandbox.createdSecondsAgo ?? 60,
    ],
  );
  return id;
}
