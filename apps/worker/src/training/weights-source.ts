/** Where a run's weights come from when its model is made: a checkpoint of it or of another run, the warm start, or the seed alone. */
import { InputError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { type Checkpoint, newestCheckpoint, recordCheckpoint } from "@rolldeck/db/training/checkpoints";
import { z } from "zod";
import { demonstrationSource, warmStartName } from "./demonstration-source.ts";
import type { PrepareScene } from "./prepare-scene.ts";
import { trainWarmStart } from "./warm-start.ts";

/** `version` is the run's: its own checkpoints have the one they were saved at, a warm start is 0. */
export type WeightsSource = Pick<Checkpoint, "version" | "name" | "path">;

/**
 * The newest checkpoint up to `version`; before the first, another run's if the config names one, or the warm start if the
 * run has one; else null.
 */
export async function weightsSource(scene: PrepareScene, version: number): Promise<WeightsSource | null> {
  const { context, claimed, boot } = scene;
  const checkpoint = await newestCheckpoint(context.pool, claimed.runId, version);
  const { startFrom } = claimed.config.model;
  // What the run began with is settled the first time: "the newest" of another run moves on.
  if (checkpoint !== null && (checkpoint.version > 0 || startFrom !== null)) return checkpoint;
  if (startFrom !== null) return recordWarmStart(scene, await startingWeights(context.pool, startFrom));
  if ((claimed.config.model.warmStart?.steps ?? 0) === 0) return null;
  const demonstrations = await demonstrationSource(context, claimed.config, scene.signal);
  const name = warmStartName(demonstrations);
  const found = await findWarmStart(context.pool, name);
  if (found === null) return recordWarmStart(scene, await trainWarmStart(scene, demonstrations, name));
  await boot.report("warm-start", "found the warm start of an earlier run");
  return recordWarmStart(scene, found);
}

/** @throws InputError when the other run has no such checkpoint (any more) */
async function startingWeights(
  pool: Pool,
  { run, version }: NonNullable<RunConfig["model"]["startFrom"]>,
): Promise<Omit<Checkpoint, "version">> {
  const found = await newestCheckpoint(pool, run, version ?? undefined);
  if (found === null || (version !== null && found.version !== version)) {
    const what = version === null ? "no checkpoint" : `no checkpoint of version ${version}`;
    throw new InputError([{ path: "model.startFrom", message: `run ${run} has ${what}` }]);
  }
  const { name, path, bytes } = found;
  return { name, path, bytes };
}

/** The server no longer has these weights, whoever recorded them. */
export async function loseWeights(pool: Pool, path: string): Promise<void> {
  await pool.query("delete from checkpoints where path = $1", [path]);
}

async function recordWarmStart(scene: PrepareScene, saved: Omit<Checkpoint, "version">): Promise<WeightsSource> {
  const warm = { version: 0, ...saved };
  await recordCheckpoint(scene.context.pool, scene.claimed.runId, warm);
  return warm;
}

/** A bigint column comes as text. */
const Row = z.object({ name: z.string(), path: z.string(), bytes: z.coerce.number().nullable() });

/** The newest one of this content that any run has recorded. */
async function findWarmStart(pool: Pool, name: string): Promise<Omit<Checkpoint, "version"> | null> {
  const { rows } = await pool.query(
    `select name, path, bytes from checkpoints where version = 0 and name = $1 order by created_at desc limit 1`,
    [name],
  );
  return rows.length === 0 ? null : Row.parse(rows[0]);
}
