/** A run's config, parsed once: it never changes after launch. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";

const kept = new Map<string, RunConfig>();
const maxKept = 200;

export async function readConfig(pool: pg.Pool, runId: string): Promise<RunConfig> {
  const known = kept.get(runId);
  if (known) return known;
  const { rows } = await pool.query<{ config: unknown }>("select config from runs where id = $1", [runId]);
  const [row] = rows;
  if (!row) throw new NotFoundError("run", runId);
  return keepConfig(runId, row.config);
}

/** Parses a config that came with another query. */
export function keepConfig(runId: string, stored: unknown): RunConfig {
  const known = kept.get(runId);
  if (known) return known;
  const config = RunConfig.parse(stored);
  const oldest = kept.keys().next();
  if (kept.size >= maxKept && !oldest.done) kept.delete(oldest.value);
  kept.set(runId, config);
  return config;
}
