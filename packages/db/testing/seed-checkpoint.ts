/** Checkpoints and their rows for tests, made directly: no worker, no claim, no event. */
import type pg from "pg";
import type { Checkpoint } from "../src/training/checkpoints.ts";

/** What is said of one, whoever has it. */
export const checkpointAt = (version: number, path = `tinker://m/weights/v${version}`): Checkpoint => ({
  version,
  name: `v${version}`,
  path,
  bytes: 7,
});

export async function seedCheckpoint(pool: pg.Pool, runId: string, checkpoint: Checkpoint): Promise<void> {
  const { version, name, path, bytes } = checkpoint;
  await pool.query(
    "insert into checkpoints (run_id, version, name, path, bytes, state) values ($1, $2, $3, $4, $5, 'complete')",
    [runId, version, name, path, bytes],
  );
}
