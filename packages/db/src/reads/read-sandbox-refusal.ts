/** Said once on a run's page where a whole step failed on it: the sandboxes of its rollouts can't be had. */

import { RunDetail } from "@rolldeck/contracts/api/runs";
import type { Ending } from "@rolldeck/contracts/endings";
import { type Queryable, readRow } from "./rows.ts";

const Refusal = RunDetail.shape.sandboxRefusal.unwrap();
const refused: Ending = "sandbox_refused";
/** Newest steps that are looked at: the one that begins after a step that failed says nothing yet. */
const newest = 2;

export const readSandboxRefusal = (db: Queryable, runId: string): Promise<RunDetail["sandboxRefusal"]> =>
  readRow(
    db,
    Refusal,
    `with recent as (
       select "id", "step", "purpose", "created_at" from "steps" where "run_id" = $1 order by "created_at" desc limit ${newest}
     ),
     reasons as (
       select c."id", r."reason", count(*)::int as "alike", bool_and(r."ending" is not distinct from $2) as "refused"
       from recent c join "rollouts" r on r."step_id" = c."id" group by 1, 2
     )
     select c."step", c."purpose", sum(r."alike")::int as "rollouts",
       (array_agg(coalesce(r."reason", '') order by r."alike" desc))[1] as "reason", max(r."alike") as "alike"
     from recent c join reasons r on r."id" = c."id"
     group by c."id", c."step", c."purpose", c."created_at" having bool_and(r."refused")
     order by c."created_at" desc limit 1`,
    [runId, refused],
  );
