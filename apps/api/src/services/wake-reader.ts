/** Asks for the worker that reads what a run on the fleet saved, and gives it back. */
import { ConflictError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { readRunFiles, unwantReader, wantReader } from "@rolldeck/db/fleet/readers";
import { listServings } from "@rolldeck/db/servings";
import type { Pool } from "pg";
import { fleetReading } from "./fleet-reading.ts";
import type { Stored, StoredPlaces } from "./stored-places.ts";

interface Run {
  readonly runId: string;
  readonly config: Pick<RunConfig, "backend">;
  readonly places: Pick<StoredPlaces<Stored>, "refusal">;
}

/** Idempotent. @param by who asks, for the run's log @throws ConflictError with the reason where none can be asked for */
export async function wakeReader(pool: Pool, run: Run, by: string): Promise<void> {
  const files = await filesOf(pool, run);
  const { wakeRefusal } = fleetReading(files);
  if (wakeRefusal !== null) throw new ConflictError(wakeRefusal);
  await wantReader(pool, files.ownerId, by);
}

/** Idempotent. @throws ConflictError while a checkpoint is served through it */
export async function releaseReader(pool: Pool, run: Run): Promise<void> {
  const { ownerId } = await filesOf(pool, run);
  const served = (await listServings(pool)).find(({ runId }) => runId === ownerId || runId === run.runId);
  if (served !== undefined)
    throw new ConflictError(`Version ${served.version} is served through it: stop that serving first.`);
  await unwantReader(pool, ownerId);
}

async function filesOf(pool: Pool, { runId, config, places }: Run) {
  const refusal = places.refusal(config);
  if (refusal !== null) throw new ConflictError(refusal);
  const files = config.backend.fleet === null ? null : await readRunFiles(pool, runId);
  if (files === null)
    throw new ConflictError("This run has no workers on the fleet: its checkpoints are read without one.");
  return files;
}
