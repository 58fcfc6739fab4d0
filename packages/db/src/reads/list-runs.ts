/** The run list: filtered, sorted, in cursor pages. The total counts the same filter. */
import type { ListRuns, RunPage } from "@rolldeck/contracts/api/runs";
import { InputError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { finite, type Queryable, readRow, readRows } from "./rows.ts";
import { decodeRunCursor, encodeRunCursor } from "./run-cursor.ts";
import { parseRunQuery, queryConditions } from "./run-query.ts";
import { readSummaries } from "./run-summary.ts";

type Input = z.output<typeof ListRuns>;

/** The sort value as an expression, its SQL type, and how the cursor's text becomes a parameter (null: not one of ours). */
const sorts = {
  // Microseconds, exact: a cursor's text then needs no date parser.
  createdAt: {
    value: `(extract(epoch from r."created_at") * 1000000)::bigint`,
    type: "bigint",
    parse: (text: string) => (/^\d{1,17}$/.test(text) ? text : null),
  },
  name: { value: `r."name" collate "C"`, type: "text", parse: (text: string) => text },
  reward: {
    value: `(select ${finite('m."value"')} from "metric_points" m
      where m."run_id" = r."id" and m."name" = 'reward/mean' order by m."step" desc limit 1)`,
    type: "float8",
    parse: (text: string) => (Number.isFinite(Number(text)) && text.trim() !== "" ? String(Number(text)) : null),
  },
} as const;

/** Keyset condition: rows after (value, id) in the order `value, id` with nulls last. */
function afterCursor(input: Input, values: unknown[]): string {
  if (!input.cursor) return "true";
  const [, , value, runId] = decodeRunCursor(input.cursor, input.sort, input.descending);
  const { type, parse } = sorts[input.sort];
  const than = input.descending ? "<" : ">";
  values.push(runId);
  const id = `$${values.length}`;
  if (value === null) return `(s."value" is null and s."id" ${than} ${id})`;
  const parameter = parse(value);
  if (parameter === null) throw new InputError([{ path: "cursor", message: "not a cursor of this list" }]);
  values.push(parameter);
  const at = `$${values.length}::text::${type}`;
  return `(s."value" ${than} ${at} or (s."value" = ${at} and s."id" ${than} ${id}) or s."value" is null)`;
}

/** @throws InputError for a status that does not exist or a foreign cursor. */
export async function listRuns(db: Queryable, input: Input): Promise<z.output<typeof RunPage>> {
  const terms = parseRunQuery(input.query);
  const filterValues: unknown[] = [];
  const filter = queryConditions(terms, filterValues);
  const counted = await readRow(
    db,
    z.object({ total: z.int() }),
    `select count(*)::int as "total" from "runs" r where ${filter}`,
    filterValues,
  );
  const values = [...filterValues];
  const { value } = sorts[input.sort];
  const direction = input.descending ? "desc" : "asc";
  const page = await readRows(
    db,
    z.object({ id: z.string(), value: z.string().nullable() }),
    `select s."id", s."value"::text as "value" from (select r."id", ${value} as "value" from "runs" r where ${filter}) s
     where ${afterCursor(input, values)}
     order by s."value" ${direction} nulls last, s."id" ${direction} limit ${input.limit + 1}`,
    values,
  );
  const shown = page.slice(0, input.limit);
  const last = page.length > input.limit ? shown.at(-1) : undefined;
  const ids = shown.map((row) => row.id);
  return {
    items: await readSummaries(db, ids),
    nextCursor: last ? encodeRunCursor([input.sort, input.descending, last.value, last.id]) : null,
    total: counted?.total ?? 0,
  };
}
