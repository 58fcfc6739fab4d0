/** Launching a comparison: its row, its variants and all of their runs are one write. */
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { newId } from "../new-id.ts";
import { askedRuns, launchedRuns, launchNotice } from "./create-run.ts";

export interface NewComparison {
  readonly name: string;
  readonly variants: readonly {
    readonly label: string;
    readonly change: unknown;
    /** A config that the catalogue accepted. */
    readonly config: RunConfig;
  }[];
}

const sql = `
with ${launchedRuns("$1")},
comparison as (insert into comparisons (id, name) values ($2, $3)),
variants as (
  insert into comparison_variants (comparison_id, position, label, change, run_id)
  select $2, v.place - 1, v.item ->> 'label', v.item -> 'change', v.item ->> 'runId'
  from jsonb_array_elements($4::jsonb) with ordinality as v (item, place)
)
select ${launchNotice} from run`;

export async function createComparison(
  pool: pg.Pool,
  { name, variants }: NewComparison,
): Promise<{ comparisonId: string; runIds: string[] }> {
  const comparisonId = newId();
  const runs = variants.map((variant) => ({ id: newId(), config: variant.config }));
  const rows = variants.map(({ label, change }, place) => ({ label, change, runId: runs[place]?.id }));
  await pool.query(sql, [askedRuns(runs), comparisonId, name, JSON.stringify(rows)]);
  return { comparisonId, runIds: runs.map(({ id }) => id) };
}
