/**
 * `npm run bench -- writer`: turn writes per second through the batch writer into the embedded Postgres with its real settings
 * (every commit is on disk before it is answered). A writer is a rollout that commits one turn after the other.
 * → {"64":{"writesPerS","p50Ms"},"512":{…}}
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPool } from "@rolldeck/db/connect";
import { startEmbeddedPostgres } from "@rolldeck/db/embedded-postgres";
import { BatchWriter } from "@rolldeck/db/hot/batch-writer";
import { migrate } from "@rolldeck/db/migrate";
import { makePassable } from "@rolldeck/db/postgres/server";
import { seedRollouts, turnEntry } from "@rolldeck/db/testing/seed-rollouts";
import type pg from "pg";
import { median } from "./quantile.ts";

const writers = [64, 512];
const warmUpMs = 1_000;

export interface WriterResult {
  /** Turns committed per second. */
  readonly writesPerS: number;
  /** Median time from `write` to its answer, milliseconds. */
  readonly p50Ms: number;
}

/** Flags: `--seconds n`, measured time per number of writers (default 5). */
export async function run(args: string[], progress: (line: string) => void): Promise<Record<string, WriterResult>> {
  const at = args.indexOf("--seconds");
  const seconds = at >= 0 ? Number(args[at + 1]) : 5;
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-bench-"));
  await makePassable(folder);
  progress("starting Postgres");
  const server = await startEmbeddedPostgres({ dataDir: join(folder, "postgres") });
  const pool = createPool(server.url, { applicationName: "bench-writer" });
  try {
    await migrate(server.url);
    const results: Record<string, WriterResult> = {};
    for (const count of writers) {
      results[count] = await measure(pool, count, seconds);
      progress(`${count} writers: ${JSON.stringify(results[count])}`);
    }
    return results;
  } finally {
    await pool.end();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(pool: pg.Pool, count: number, seconds: number): Promise<WriterResult> {
  const { rollouts } = await seedRollouts(pool, { count });
  const writer = new BatchWriter(pool);
  const begin = performance.now() + warmUpMs;
  const end = begin + seconds * 1000;
  const times: number[] = [];
  await Promise.all(
    rollouts.map(async (rollout) => {
      for (let turn = 0; performance.now() < end; turn++) {
        const sent = performance.now();
        await writer.write(turnEntry(rollout, turn));
        const answered = performance.now();
        if (sent >= begin && answered <= end) times.push(answered - sent);
      }
    }),
  );
  await writer.close();
  const p50Ms = median(times);
  return { writesPerS: Math.round(times.length / seconds), p50Ms: Math.round(p50Ms * 100) / 100 };
}
