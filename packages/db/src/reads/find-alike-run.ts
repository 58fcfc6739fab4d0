/** A run to learn from what another one will take: the same model, backend and task sets, with steps that are over. */
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { type Queryable, readRow } from "./rows.ts";

const Row = z.object({ runId: z.string() });

/** The newest such run, one whose updates had the devices to themselves before any other; null: there is none. */
export async function findAlikeRun(
  db: Queryable,
  { model, backend, taskSets }: Pick<RunConfig, "model" | "backend" | "taskSets">,
): Promise<string | null> {
  const values = [model.name, backend, JSON.stringify(taskSets.map(({ name }) => name))];
  return (await readRow(db, Row, sql, values))?.runId ?? null;
}

const sql = `
  select r."id" as "runId" from "runs" r
  where r."config" ->> 'kind' = 'train' and r."config" -> 'model' ->> 'name' = $1 and r."config" -> 'backend' = $2::jsonb
    and jsonb_path_query_array(r."config", '$.taskSets[*].name') = $3::jsonb
    and exists (select from "steps" s where s."run_id" = r."id" and s."purpose" = 'train' and s."state" = 'done')
  order by r."config" -> 'dispatcher' ->> 'name' = 'async', r."created_at" desc limit 1`;
