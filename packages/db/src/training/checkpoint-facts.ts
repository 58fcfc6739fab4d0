/** What a run's rule about its checkpoints goes by: pins, runs that began with them, and the measure of each version. */
import type { CheckpointConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { finite, type Queryable, readRows } from "../reads/rows.ts";
import { isServedSql } from "../servings.ts";

const Facts = z.object({
  version: z.int(),
  name: z.string(),
  pinned: z.boolean(),
  isParent: z.boolean(),
  served: z.boolean(),
  measure: z.number().nullable(),
  awaited: z.boolean(),
});
export type StoredCheckpointFacts = Readonly<z.infer<typeof Facts>>;

/**
 * SQL condition: another run holds checkpoint `c` as its own beginning, or is to begin with it.
 * @param c alias of a row of checkpoints
 */
export const isParentSql = (c: string): string => `(
  exists (select from checkpoints other where other.path = ${c}.path and other.run_id <> ${c}.run_id and other.state = 'complete')
  or exists (select from runs later where later.ended_at is null and later.config #>> '{model,startFrom,run}' = ${c}.run_id
    and (later.config #>> '{model,startFrom,version}')::int = ${c}.version))`;

/**
 * The complete checkpoints of a run, newest first. A version is measured by the evaluation of its step, or by the rewards of the
 * step that it sampled, which is the next one.
 */
export function checkpointFacts(
  db: Queryable,
  runId: string,
  keepBest: CheckpointConfig["keepBest"],
): Promise<StoredCheckpointFacts[]> {
  const metric = keepBest?.metric ?? null;
  const [purpose, offset] = metric?.startsWith("evaluate/") ? ["evaluate", 0] : ["train", 1];
  return readRows(
    db,
    Facts,
    `select c.version, c.name, c.pinned, ${isParentSql("c")} as "isParent", ${isServedSql("c")} as served,
       ${finite("m.value")} as measure,
       m.value is null and $2::text is not null and exists (select from steps s where s.run_id = c.run_id and s.purpose = $3
         and s.step = c.version + $4::int and s.state in ('gathering', 'updating')) as awaited
     from checkpoints c
     left join metric_points m on m.run_id = c.run_id and m.name = $2 and m.step = c.version + $4::int
     where c.run_id = $1 and c.state = 'complete' order by c.version desc`,
    [runId, metric, purpose, offset],
  );
}
