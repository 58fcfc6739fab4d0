/** Where a run's weights come from when its model is made: a checkpoint of it or of another run, the warm start, or the seed alone. */
import { InputError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { gpuWorkerName, gpuWorkerNameSql } from "@rolldeck/db/gpu-workers";
import { type Checkpoint, newestCheckpoint, recordCheckpoint } from "@rolldeck/db/training/checkpoints";
import { setParentVersion } from "@rolldeck/db/training/set-parent-version";
import { z } from "zod";
import { demonstrationSource, warmStartName } from "./demonstration-source.ts";
import type { PrepareScene } from "./prepare-scene.ts";
import { trainWarmStart } from "./warm-start.ts";

/** `version` is the run's: its own checkpoints have the one they were saved at, a warm start is 0. */
export type WeightsSource = Pick<Checkpoint, "version" | "name" | "path">;

/**
 * The newest checkpoint up to `version`; before the first, another run's if the config names one, or the warm start if the
 * run has one; else null.
 * @param lost paths that the server could not load
 */
export async function weightsSource(
  scene: PrepareScene,
  version: number,
  lost: ReadonlySet<string>,
): Promise<WeightsSource | null> {
  const { context, claimed, boot } = scene;
  const checkpoint = await newestCheckpoint(context.pool, claimed.runId, version);
  const { startFrom } = claimed.config.model;
  // What the run began with is settled the first time: "the newest" of another run moves on.
  if (checkpoint !== null && (checkpoint.version > 0 || startFrom !== null)) return checkpoint;
  if (startFrom !== null) return recordWarmStart(scene, await startingWeights(scene, startFrom, lost));
  if ((claimed.config.model.warmStart?.steps ?? 0) === 0) return null;
  const demonstrations = await demonstrationSource(context, claimed.config, scene.signal);
  const name = warmStartName(demonstrations);
  const found = await findWarmStart(context.pool, name, { server: gpuWorkerName(claimed), lost });
  if (found === null) return recordWarmStart(scene, await trainWarmStart(scene, demonstrations, name));
  await boot.report("warm-start", "found the warm start of an earlier run");
  return recordWarmStart(scene, found);
}

/**
 * Which of the parent's versions it is goes into the run's row.
 * @throws InputError when there is no such checkpoint (any more), or the run has trained on weights that are gone
 */
async function startingWeights(
  { context: { pool }, claimed, seat }: PrepareScene,
  { run, version }: NonNullable<RunConfig["model"]["startFrom"]>,
  lost: ReadonlySet<string>,
): Promise<Omit<Checkpoint, "version">> {
  const refuse = (message: string) => new InputError([{ path: "model.startFrom", message }]);
  // Its stored steps mean nothing on any other weights.
  if (claimed.servingVersion !== null) throw refuse("its server no longer has the weights that this run began with");
  const found = await newestCheckpoint(pool, run, version ?? undefined);
  if (found === null || (version !== null && found.version !== version))
    throw refuse(`run ${run} has ${version === null ? "no checkpoint" : `no checkpoint of version ${version}`}`);
  if (lost.has(found.path))
    throw refuse(`its server can't load the checkpoint of version ${found.version} of run ${run}: name another one`);
  await setParentVersion(pool, seat.holder, found.version);
  const { name, path, bytes } = found;
  return { name, path, bytes };
}

async function recordWarmStart(scene: PrepareScene, saved: Omit<Checkpoint, "version">): Promise<WeightsSource> {
  const warm = { version: 0, ...saved };
  await recordCheckpoint(scene.context.pool, scene.seat.holder, warm);
  return warm;
}

/** A bigint column comes as text. */
const Row = z.object({ name: z.string(), path: z.string(), bytes: z.coerce.number().nullable() });

/** The newest one of this content that any run on the same server has recorded and that server has not lost. */
async function findWarmStart(
  pool: Pool,
  name: string,
  { server, lost }: { readonly server: string; readonly lost: ReadonlySet<string> },
): Promise<Omit<Checkpoint, "version"> | null> {
  const { rows } = await pool.query(
    `select c.name, c.path, c.bytes from checkpoints c join runs r on r.id = c.run_id
     where c.version = 0 and c.name = $1 and c.state = 'complete' and c.path <> all ($3::text[])
       and ${gpuWorkerNameSql("r")} = $2 order by c.created_at desc limit 1`,
    [name, server, [...lost]],
  );
  return rows.length === 0 ? null : Row.parse(rows[0]);
}
