/** What a run had cost when its newest step ended, from its points. */
import { RunDetail } from "@rolldeck/contracts/api/runs";
import { z } from "zod";
import { finite, type Queryable, readRow } from "./rows.ts";

type Cost = RunDetail["cost"];
const Row = RunDetail.shape.cost.unwrap().extend({ total: z.number().nullable(), unpriced: z.int().nullable() });

const part = (name: string, column: string): string =>
  `(select ${finite('p."value"')} from "metric_points" p
     where p."run_id" = m."run_id" and p."name" = 'cost/${name}' and p."step" = m."step") as "${column}"`;

export async function readRunCost(db: Queryable, runId: string): Promise<Cost> {
  const row = await readRow(
    db,
    Row,
    `select m."step", ${finite('m."value"')} as "total", ${part("gpu", "gpu")}, ${part("sandbox", "sandbox")},
       ${part("judge", "judge")}, ${part("hosted", "hosted")}, ${part("per-trained-group", "perTrainedGroup")},
       ${part("unpriced", "unpriced")}
     from "metric_points" m where m."run_id" = $1 and m."name" = 'cost/total' order by m."step" desc limit 1`,
    [runId],
  );
  return row === null || row.total === null ? null : { ...row, total: row.total, unpriced: row.unpriced ?? 0 };
}
