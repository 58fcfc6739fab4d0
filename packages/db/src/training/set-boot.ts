/** Progress of a run's boot: what the page shows, and one event each. */
import type { BootPhase } from "@rolldeck/contracts/events";
import type pg from "pg";
import { cutText } from "../hot/clean-text.ts";
import { eventLog } from "../hot/event-log.ts";

export interface BootProgress {
  readonly phase: BootPhase;
  readonly message: string;
  readonly done: number | null;
  readonly total: number | null;
  readonly unit: string | null;
  readonly elapsedMs: number;
}

const sql = `
with happened as materialized (
  select 1 as ord, $1::text as run_id, 'boot-progress' as type, null::text as rollout_id,
    jsonb_build_object('type', 'boot-progress') || $2::jsonb as body
),
${eventLog({ set: "boot = $2::jsonb" })}
select count(sent) from notified`;

/** Writes progress with its event; the caller throttles. */
export async function setBoot(pool: pg.Pool, runId: string, boot: BootProgress): Promise<void> {
  const { phase, message, done, total, unit, elapsedMs } = boot;
  const stored = { phase, message: cutText(message, 500), done, total, unit, elapsedMs };
  await pool.query(sql, [runId, JSON.stringify(stored)]);
}
