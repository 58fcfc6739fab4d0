/**
 * `npm run bench -- storage`: what a token costs in the database under three ways of showing an agent its history: all of it, the last
 * eight turns, or all with observations older than ten turns replaced by a stub.
 * → {"plain":{"bytesPerToken","ratio"},"keepLast8":{…},"dropOld10":{…}}
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPool } from "@rolldeck/db/connect";
import { startEmbeddedPostgres } from "@rolldeck/db/embedded-postgres";
import { BatchWriter } from "@rolldeck/db/hot/batch-writer";
import { migrate } from "@rolldeck/db/migrate";
import { makePassable } from "@rolldeck/db/postgres/server";
import { type HistoryPolicy, historyPolicies, scriptRollout } from "@rolldeck/db/testing/history-policies";
import { seedRollouts } from "@rolldeck/db/testing/seed-rollouts";
import type pg from "pg";

export interface StorageResult {
  /** Bytes of stored ids ÷ tokens; logprobs take 4 bytes a sampled token more. */
  readonly bytesPerToken: number;
  /** Stored tokens ÷ distinct tokens. */
  readonly ratio: number;
}

/** Flags: `--turns n` (default 60), `--rollouts n` (default 16). */
export async function run(
  args: string[],
  progress: (line: string) => void,
): Promise<Record<HistoryPolicy, StorageResult>> {
  const flag = (name: string, fallback: number): number => {
    const at = args.indexOf(`--${name}`);
    return at >= 0 ? Number(args[at + 1]) : fallback;
  };
  const [turns, rollouts] = [flag("turns", 60), flag("rollouts", 16)];
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-bench-"));
  await makePassable(folder);
  progress("starting Postgres");
  const server = await startEmbeddedPostgres({ dataDir: join(folder, "postgres") });
  const pool = createPool(server.url, { applicationName: "bench-storage" });
  try {
    await migrate(server.url);
    const results: Partial<Record<HistoryPolicy, StorageResult>> = {};
    for (const policy of historyPolicies) {
      results[policy] = await measure(pool, policy, turns, rollouts);
      progress(`${policy}: ${JSON.stringify(results[policy])}`);
    }
    return results as Record<HistoryPolicy, StorageResult>;
  } finally {
    await pool.end();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(pool: pg.Pool, policy: HistoryPolicy, turns: number, count: number): Promise<StorageResult> {
  const run = await seedRollouts(pool, { count });
  const writer = new BatchWriter(pool);
  const scripts = run.rollouts.map((rollout, seed) => scriptRollout(rollout, policy, turns, seed + 1));
  await Promise.all(
    scripts.map(async (script) => {
      for (const { entry } of script.turns) await writer.write(entry);
    }),
  );
  await writer.close();
  const { rows } = await pool.query<{ tokens: number; bytes: number }>(
    `select sum(s.length)::float8 as tokens, sum(length(s.tokens))::float8 as bytes
     from segments s join rollouts r on r.id = s.rollout_id where r.run_id = $1`,
    [run.runId],
  );
  const { tokens = 0, bytes = 0 } = rows[0] ?? {};
  const distinct = scripts.reduce((sum, script) => sum + script.distinctTokens, 0);
  const rounded = (value: number): number => Math.round(value * 1000) / 1000;
  return { bytesPerToken: rounded(bytes / tokens), ratio: rounded(tokens / distinct) };
}
