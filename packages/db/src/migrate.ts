/**
 * Applies prisma/migrations in order, each in one transaction with its record, which is the one `prisma migrate deploy` keeps
 * (same table, same checksum), so both tools may be used on one database. Invariants: two processes that migrate at once take
 * turns (advisory lock); a database with tables but without our marker is never touched.
 */
import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import pg from "pg";
import { findRoot } from "./find-root.ts";

const lockKey = 7_241_905_112;

const recordsTable = `create table if not exists "_prisma_migrations" (
  "id" varchar(36) primary key,
  "checksum" varchar(64) not null,
  "finished_at" timestamptz,
  "migration_name" varchar(255) not null,
  "logs" text,
  "rolled_back_at" timestamptz,
  "started_at" timestamptz not null default now(),
  "applied_steps_count" integer not null default 0
)`;

interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

/** Migrations of a folder in the order of their names. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names.sort().map(async (name) => {
      const sql = await readFile(join(folder, name, "migration.sql"), "utf8");
      return { name, sql, checksum: createHash("sha256").update(sql).digest("hex") };
    }),
  );
}

/** Brings the database up to the newest migration. @throws InputError for a database that is not ours */
export async function migrate(url: string, options: { readonly folder?: string } = {}): Promise<{ applied: string[] }> {
  const migrations = await readMigrations(options.folder ?? join(findRoot(), "prisma", "migrations"));
  const client = new pg.Client({ connectionString: url, application_name: "rolldeck-migrate" });
  try {
    await client.connect();
  } catch (cause) {
    throw new BoundaryError("infrastructure", "database-unreachable", "the database does not answer", { cause });
  }
  try {
    await client.query("set search_path to public");
    await client.query("select pg_advisory_lock($1)", [lockKey]);
    await refuseForeign(client);
    await client.query(recordsTable);
    const applied: string[] = [];
    const done = await readRecords(client);
    for (const migration of migrations) {
      if (isDone(migration, done)) continue;
      await apply(client, migration);
      applied.push(migration.name);
    }
    return { applied };
  } finally {
    // Closing the session gives the advisory lock back.
    await client.end();
  }
}

async function refuseForeign(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ marker: boolean; tables: string[] }>(
    `select to_regclass('public.rolldeck_marker') is not null as marker,
       array(select tablename::text from pg_tables where schemaname = 'public' and tablename <> '_prisma_migrations'
         order by tablename limit 3) as tables`,
  );
  const [found] = rows;
  if (!found || found.marker || found.tables.length === 0) return;
  throw new InputError([
    {
      path: "databaseUrl",
      message: `the database already holds tables that are not Rolldeck's (${found.tables.join(", ")} …)`,
      fix: "give an empty database, or one that Rolldeck made",
    },
  ]);
}

interface MigrationRecord {
  readonly name: string;
  readonly checksum: string;
  readonly finished: boolean;
}

async function readRecords(client: pg.Client): Promise<Map<string, MigrationRecord>> {
  const { rows } = await client.query<MigrationRecord>(
    `select migration_name as name, checksum, finished_at is not null as finished
     from _prisma_migrations where rolled_back_at is null`,
  );
  return new Map(rows.map((row) => [row.name, row]));
}

function isDone(migration: Migration, done: Map<string, MigrationRecord>): boolean {
  const record = done.get(migration.name);
  if (!record) return false;
  if (!record.finished) {
    throw new InputError([
      {
        path: "databaseUrl",
        message: `migration ${migration.name} was begun by another tool and did not finish`,
        fix: "restore the database, or mark it with `prisma migrate resolve`",
      },
    ]);
  }
  if (record.checksum !== migration.checksum) {
    throw new InputError([
      {
        path: "databaseUrl",
        message: `migration ${migration.name} is not the one this database was made with`,
        fix: "use the version of Rolldeck that made it, or an empty database",
      },
    ]);
  }
  return true;
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query("begin");
  try {
    await client.query(migration.sql);
    await client.query(
      `insert into _prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
       values ($1, $2, $3, now(), clock_timestamp(), 1)`,
      [randomUUID(), migration.checksum, migration.name],
    );
    await client.query("commit");
  } catch (cause) {
    await client.query("rollback");
    throw new BoundaryError("infrastructure", "migration-failed", `migration ${migration.name} failed`, { cause });
  }
}
