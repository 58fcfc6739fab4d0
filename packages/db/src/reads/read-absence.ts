/** What a live run waits for of a model server that someone else runs. Its row is as new as the workers' last look at it. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { awayLimitMinutes } from "@rolldeck/contracts/away-limit";
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { gpuWorkerName, triesUnit } from "../gpu-workers.ts";
import { iso, type Queryable, readRow } from "./rows.ts";

/** An older word is of an absence that nobody has looked at since. */
const freshSeconds = 60;
const waiting: readonly RunStatus[] = ["queued", "preparing", "running", "pausing"];

const Row = z.object({ url: z.string().nullable(), reason: z.string(), since: z.string(), tries: z.int() });

/** Null: for none, or for one that is started here (supervised, or the fleet's), whose own start is the boot's progress. */
export async function readAbsence(
  db: Queryable,
  { runId, status }: { readonly runId: string; readonly status: RunStatus },
  { config, servingVersion }: { readonly config: RunConfig; readonly servingVersion: number | null },
): Promise<RunDetail["waitingFor"]> {
  if (!waiting.includes(status)) return null;
  const name = gpuWorkerName({ runId, config });
  const row = await readRow(
    db,
    Row,
    `select "url", "boot" ->> 'message' as "reason", ("boot" ->> 'done')::int as "tries",
       ${iso(`("updated_at" - ("boot" ->> 'elapsedMs')::float8 * interval '1 millisecond')`)} as "since"
     from "gpu_workers" where "name" = $1 and "state" in ('absent', 'lost') and "boot" ->> 'unit' = $2
       and "updated_at" > now() - $3::int * interval '1 second'`,
    [name, triesUnit, freshSeconds],
  );
  if (row === null) return null;
  const { url, reason, since, tries } = row;
  const limitMinutes = awayLimitMinutes(config.backend, servingVersion !== null);
  return { address: url ?? name, reason, since, tries, limitMinutes };
}
