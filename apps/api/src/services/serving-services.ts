/** Which checkpoints are served: rows that the endpoint reads with every request, so a stop is felt at once. */
import type { StoredCheckpoints } from "@rolldeck/backends/gpu-worker/stored-checkpoints";
import { parseCheckpointId } from "@rolldeck/contracts/api/checkpoints";
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { isSupervised } from "@rolldeck/db/gpu-workers";
import { readConfig } from "@rolldeck/db/runs/read-config";
import { listServings, mostServings, startServing, stopServing } from "@rolldeck/db/servings";
import type { Pool } from "pg";
import type { ServingServices } from "../services.ts";
import { meaning } from "./checkpoint-exports.ts";

export function createServingServices(pool: Pool, stored: Pick<StoredCheckpoints, "verify"> | null): ServingServices {
  return {
    list: () => listServings(pool),
    async start({ id }, by) {
      const at = parseCheckpointId(id);
      const { backend } = await readConfig(pool, at.runId);
      if (stored === null || !isSupervised(backend))
        throw new ConflictError("Only checkpoints on this server's own GPU worker can be served.");
      const path = await pathOf(pool, at);
      if (path === null) throw new NotFoundError("checkpoint", id);
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
