import { createHash } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import pg from "pg";
import { afterEach, expect, test } from "vitest";
import { createTestDatabase, startTestPostgres } from "../testing/postgres.ts";
import { createPool } from "./connect.ts";
import { findRoot } from "./find-root.ts";
import { migrate, readMigrations } from "./migrate.ts";
import { newId } from "./new-id.ts";

const pools: pg.Pool[] = [];
async function emptyDatabase(): Promise<string> {
  const server = await startTestPostgres();
  const name = `empty_${newId()}`;
  const client = new pg.Client({ connectionString: server.url("postgres") });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  return server.url(name);
}
function open(url: string): pg.Pool {
  const pool = createPool(url);
  pools.push(pool);
  return pool;
}
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
});

const migrationNames = async (): Promise<string[]> =>
  (await readdir(join(findRoot(), "prisma/migrations"))).filter((name) => /^\d/.test(name)).sort();

test("two processes that migrate an empty database at once apply each migration once, with Prisma's record", async () => {
  const url = await emptyDatabase();
  const results = await Promise.all([migrate(url), migrate(url), migrate(url)]);
  expect(results.map((result) => result.applied.length).sort()).toEqual([0, 0, (await migrationNames()).length]);
  const { rows } = await open(url).query(
    "select migration_name, checksum, finished_at from _prisma_migrations order by migration_name",
  );
  expect(rows.map((row) => row.migration_name)).toEqual(await migrationNames());
  for (const { migration_name: name, checksum, finished_at: finishedAt } of rows) {
    const file = await readFile(join(findRoot(), "prisma/migrations", name, "migration.sql"));
    expect(checksum).toBe(createHash("sha256").update(file).digest("hex"));
    expect(finishedAt).toBeInstanceOf(Date);
  }
});

test("a database with someone else's tables is refused and left as it was", async () => {
  const url = await emptyDatabase();
  await open(url).query("create table customers (id int)");
  await expect(migrate(url)).rejects.toThrow(InputError);
  await expect(migrate(url)).rejects.toThrow(/customers/);
  const { rows } = await open(url).query("select tablename from pg_tables where schemaname = 'public'");
  expect(rows).toEqual([{ tablename: "customers" }]);
});

test("a database made with another text of a migration is refused", async () => {
  const database = await createTestDatabase();
  await database.pool.query("update _prisma_migrations set checksum = 'x'");
  await expect(migrate(database.url)).rejects.toThrow(/not the one this database was made with/);
  await database.drop();
});

test("a run that was under way before groups were counted goes on from its own count", async () => {
  const url = await emptyDatabase();
  const folder = join(findRoot(), "prisma/migrations");
  const before = await mkdtemp(join(tmpdir(), "rolldeck-migrations-"));
  for (const { name } of await readMigrations(folder))
    if (name < "20261203") await cp(join(folder, name), join(before, name), { recursive: true });
  await migrate(url, { folder: before });
  await rm(before, { recursive: true });
  const pool = open(url);
  await pool.query(`
    insert into runs (id, name, project, tags, kind, status, config, seed, step_source, steps)
      select id, 'x', 'x', '{}', 'train', 'running', '{}', 0, 'planned', 9 from unnest(array['old', 'new']) r (id);
    insert into steps (id, run_id, purpose, step, state, source)
      values ('s1', 'old', 'train', 1, 'done', 'planned'), ('s2', 'old', 'train', 2, 'gathering', 'planned'),
        ('e0', 'old', 'evaluate', 0, 'done', 'planned');
    insert into groups (id, run_id, step_id, position, task_set, task, split, instance_index, instance_id)
      select s || n, 'old', s, n, 0, 't', 'train', n, 't-' || n from unnest(array['s1', 's2', 'e0']) s, generate_series(1, 3) n`);
  expect((await migrate(url)).applied).toContain("20261203000000_dispatch");
  const { rows } = await pool.query("select id, groups_drawn, dispatch, draining from runs order by id");
  expect(rows).toEqual([
    { id: "new", groups_drawn: 0, dispatch: null, draining: false },
    { id: "old", groups_drawn: 6, dispatch: null, draining: false },
  ]);
});

test("a database that does not answer says so", async () => {
  await expect(migrate("postgresql://x:y@127.0.0.1:1/none")).rejects.toThrow(/does not answer/);
});
