/** Launched comparisons: one with its runs side by side, and the list. */
import {
  type ComparisonDetail,
  ComparisonPage,
  type ListComparisons,
  type NativeValues,
} from "@rolldeck/contracts/api/comparisons";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { nativeMetric, nativeParts } from "@rolldeck/contracts/metrics";
import { sharedMetricNames } from "@rolldeck/contracts/shared-metrics";
import { z } from "zod";
import { compareRuns } from "./compare-runs.ts";
import { decodeCursor, encodeCursor } from "./page-cursor.ts";
import { finite, iso, type Queryable, readRow, readRows } from "./rows.ts";

const Head = z.object({
  name: z.string(),
  createdAt: z.string(),
  variants: z.array(z.object({ label: z.string(), runId: z.string(), change: z.record(z.string(), z.json()) })),
});

/** Without notes: what they say is not in the database. @throws NotFoundError */
export async function readComparison(db: Queryable, comparisonId: string): Promise<Omit<ComparisonDetail, "notes">> {
  const head = await readRow(
    db,
    Head,
    `select c."name", ${iso('c."created_at"')} as "createdAt",
       (select coalesce(jsonb_agg(jsonb_build_object('label', v."label", 'runId', v."run_id", 'change', v."change")
         order by v."position"), '[]') from "comparison_variants" v where v."comparison_id" = c."id") as "variants"
     from "comparisons" c where c."id" = $1`,
    [comparisonId],
  );
  if (head === null) throw new NotFoundError("comparison", comparisonId);
  const runIds = head.variants.map(({ runId }) => runId);
  const compared = await compareRuns(db, { runIds, names: [...sharedMetricNames] });
  const native = await readNative(db, runIds);
  return {
    comparisonId,
    ...head,
    compared,
    native: compared.runs.map(({ runId, backend }) => ({ runId, backend, values: native.get(runId) ?? [] })),
  };
}

const NativeRow = z.object({ runId: z.string(), metric: z.string(), step: z.int(), value: z.number().nullable() });

/** Steps from name to name by the index: a run of a million points is read as fast as a short one. */
const nativeSql = `
with recursive named (run_id, name) as (
  select w.id, (select m.name from metric_points m where m.run_id = w.id order by m.name limit 1)
  from unnest($1::text[]) w (id)
  union all
  select n.run_id, (select m.name from metric_points m where m.run_id = n.run_id and m.name > n.name order by m.name limit 1)
  from named n where n.name is not null
)
select n.run_id as "runId", n.name as "metric", l.step, ${finite("l.value")} as "value"
from named n cross join lateral (
  select m.step, m.value from metric_points m where m.run_id = n.run_id and m.name = n.name order by m.step desc limit 1
) l
where n.name like 'native/%' order by n.run_id, n.name`;

async function readNative(
  db: Queryable,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, NativeValues["values"]>> {
  const found = new Map<string, NativeValues["values"]>(runIds.map((runId) => [runId, []]));
  for (const { runId, metric, step, value } of await readRows(db, NativeRow, nativeSql, [runIds])) {
    const parts = nativeParts(metric);
    const name = parts && nativeMetric(parts.backend, parts.name);
    if (parts && name) found.get(runId)?.push({ metric: name, name: parts.name, step, value });
  }
  return found;
}

const Cursor = z.tuple([z.string().regex(/^\d{1,17}$/), z.string().regex(/^[0-9a-z]{1,40}$/)]);
const ListRow = ComparisonPage.shape.items.element.extend({ micros: z.string() });

/** Newest first. @throws InputError for a foreign cursor */
export async function listComparisons(
  db: Queryable,
  { limit, cursor }: z.output<typeof ListComparisons>,
): Promise<ComparisonPage> {
  const after = cursor ? decodeCursor(Cursor, cursor) : null;
  const micros = `(extract(epoch from c."created_at") * 1000000)::bigint`;
  const rows = await readRows(
    db,
    ListRow,
    `select c."id" as "comparisonId", c."name", ${iso('c."created_at"')} as "createdAt", ${micros}::text as "micros",
       array(select v."label" from "comparison_variants" v where v."comparison_id" = c."id" order by v."position") as "labels",
       array(select v."run_id" from "comparison_variants" v where v."comparison_id" = c."id" order by v."position") as "runIds"
     from "comparisons" c where $1::bigint is null or (${micros}, c."id") < ($1::bigint, $2::text)
     order by c."created_at" desc, c."id" desc limit $3`,
    [after?.[0] ?? null, after?.[1] ?? null, limit + 1],
  );
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return {
    items: items.map(({ micros: _, ...item }) => item),
    nextCursor: last ? encodeCursor([last.micros, last.comparisonId]) : null,
  };
}
