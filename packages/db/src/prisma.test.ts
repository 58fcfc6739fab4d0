import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../testing/postgres.ts";
import { prismaTables, type TableShape } from "../testing/prisma-models.ts";
import { seedRollouts } from "../testing/seed-rollouts.ts";
import { findRoot } from "./find-root.ts";
import { createPrisma } from "./prisma.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function databaseTables(pool: pg.Pool): Promise<Map<string, TableShape>> {
  const { rows } = await pool.query<TableShape & { name: string }>(`
    select c.relname as name,
      (select json_object_agg(a.attname, json_build_object('type', t.typname, 'nullable', not a.attnotnull, 'hasDefault', a.atthasdef))
        from pg_attribute a join pg_type t on t.oid = a.atttypid where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
      (select json_agg(a.attname order by place) from pg_constraint k, unnest(k.conkey) with ordinality u (num, place)
        join pg_attribute a on a.attnum = u.num and a.attrelid = c.oid where k.conrelid = c.oid and k.contype = 'p') as "primaryKey",
      (select coalesce(json_agg(names order by names::text), '[]') from (
        select json_agg(a.attname order by place) as names from pg_constraint k, unnest(k.conkey) with ordinality u (num, place)
        join pg_attribute a on a.attnum = u.num and a.attrelid = c.oid
        where k.conrelid = c.oid and k.contype = 'u' group by k.oid) u) as uniques,
      -- Partial indexes are left to the SQL: the schema language has no word for them.
      (select coalesce(json_agg(i.relname order by i.relname), '[]') from pg_index x join pg_class i on i.oid = x.indexrelid
        where x.indrelid = c.oid and not x.indisunique and x.indpred is null) as indexes,
      (select coalesce(json_agg(a.attname || ' → ' || f.relname || '.' || fa.attname ||
          case k.confdeltype when 'c' then ' cascade' else ' no action' end order by a.attname), '[]')
        from pg_constraint k join pg_class f on f.oid = k.confrelid
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.conkey[1]
        join pg_attribute fa on fa.attrelid = f.oid and fa.attnum = k.confkey[1]
        where k.conrelid = c.oid and k.contype = 'f') as "foreignKeys"
    from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and c.relname <> '_prisma_migrations'
    order by c.relname`);
  return new Map(rows.map(({ name, ...shape }) => [name, shape]));
}

const sorted = (shape: TableShape) => ({
  ...shape,
  uniques: [...shape.uniques].sort(),
  indexes: [...shape.indexes].sort(),
  foreignKeys: [...shape.foreignKeys].sort(),
});

test("the database that the migrations make is the one schema.prisma describes", async () => {
  const described = prismaTables(await readFile(join(findRoot(), "prisma", "schema.prisma"), "utf8"));
  const made = await databaseTables(database.pool);
  expect([...described.keys()].sort()).toEqual([...made.keys()].sort());
  for (const [table, shape] of described) {
    expect({ table, ...sorted(shape) }).toEqual({ table, ...sorted(made.get(table) ?? shape) });
  }
});

test("the generated client reads what the hot path wrote, through the process's own pool", async () => {
  const run = await seedRollouts(database.pool, { count: 3 });
  await database.pool.query("update runs set sampled_tokens = 9007199254740993 where id = $1", [run.runId]);
  const prisma = createPrisma(database.pool);
  const found = await prisma.run.findUnique({ where: { id: run.runId }, include: { rollouts: true } });
  expect(found?.rollouts).toHaveLength(3);
  expect(found?.sampledTokens).toBe(9007199254740993n);
  await prisma.$disconnect();
  expect((await database.pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
});
