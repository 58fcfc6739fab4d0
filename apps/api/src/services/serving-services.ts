/** Which checkpoints are served: rows that the endpoint reads with every request, so a stop is felt at once. */
import { parseCheckpointId } from "@rolldeck/contracts/api/checkpoints";
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { readConfig } from "@rolldeck/db/runs/read-config";
import { listServings, mostServings, startServing, stopServing } from "@rolldeck/db/servings";
import type { Pool } from "pg";
import type { ServingServices } from "../services.ts";
import { meaning } from "./checkpoint-exports.ts";
import type { Stored, StoredPlaces } from "./stored-places.ts";

type Places = Pick<StoredPlaces<Pick<Stored, "verify">>, "of">;

export function createServingServices(pool: Pool, places: Places): ServingServices {
  return {
    list: () => listServings(pool),
    async start({ id }, by) {
      const at = parseCheckpointId(id);
      const config = await readConfig(pool, at.runId);
      const path = await pathOf(pool, at);
      if (path === null) throw new NotFoundError("checkpoint", id);
      const { stored } = await places.of(at.runId, config);
      await stored.verify(path).catch((error: unknown) => {
        throw meaning(error, id);
      });
      const serving = await startServing(pool, at, by);
      if (serving === null)
        throw new ConflictError(`${mostServings} checkpoints are served already: stop one of them first.`);
      return serving;
    },
    async stop({ servingId }, by) {
      await stopServing(pool, servingId, by);
      return listServings(pool);
    },
  };
}

async function pathOf(pool: Pool, at: { readonly runId: string; readonly version: number }): Promise<string | null> {
  const { rows } = await pool.query<{ path: string }>(
    "select path from checkpoints where run_id = $1 and version = $2 and state = 'complete'",
    [at.runId, at.version],
  );
  return rows[0]?.path ?? null;
}
