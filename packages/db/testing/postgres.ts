/**
 * A real Postgres for tests: one server per process on a free port, started on first use and gone with the process however it
 * ends. Clusters are copied from one that is made and migrated once per version of the migrations; each test gets its own
 * database, a clone of the migrated one. Nothing is synced to disk.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chown, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { createPool } from "../src/connect.ts";
import { findRoot } from "../src/find-root.ts";
import { migrate, readMigrations } from "../src/migrate.ts";
import { newId } from "../src/new-id.ts";
import { binariesFor, type ServerUser, serverUser } from "../src/postgres/binaries.ts";
import {
  freePort,
  initCluster,
  makePassable,
  readPidFile,
  serverFlags,
  serverUrl,
  spawnServer,
  tryAgain,
  waitGone,
  waitReady,
} from "../src/postgres/server.ts";

/** What outlives this process; of one account, because another could not change it. */
const cache = join(tmpdir(), `rolldeck-test-cache-${userInfo().uid}`);
const password = "test";
const template = "rolldeck_template";
// Commits reach the system before they are answered, so they survive a crash of the server, which tests cause.
const fast = { fsync: "off", full_page_writes: "off", shared_buffers: "64MB" };

export interface TestPostgres {
  url(database: string): string;
  /** Ends the server at once, as a crash would; `start` brings it back on the same port. */
  crash(): Promise<void>;
  start(): Promise<void>;
  restart(): Promise<void>;
}
export interface TestDatabase {
  readonly url: string;
  readonly pool: pg.Pool;
  drop(): Promise<void>;
}

let shared: Promise<TestPostgres> | undefined;

/** One server per process, started on first use. */
export function startTestPostgres(): Promise<TestPostgres> {
  shared ??= launch();
  return shared;
}

/** A fresh, migrated database of that server. */
export async function createTestDatabase(options: { readonly max?: number } = {}): Promise<TestDatabase> {
  const server = await startTestPostgres();
  const name = `test_${newId()}`;
  await administer(server, `create database ${name} template ${template} strategy file_copy`);
  const pool = createPool(server.url(name), { max: options.max ?? 10, applicationName: "test" });
  return {
    url: server.url(name),
    pool,
    drop: async () => {
      await pool.end();
      await administer(server, `drop database if exists ${name} with (force)`);
    },
  };
}

async function administer(server: TestPostgres, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: server.url("postgres") });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** Runs the server until our end of file 3 closes, which happens however this process dies; then removes its folder. */
const untilParentDies = `"$@" 3<&- &
server=$!
(cat <&3 >/dev/null; kill -QUIT $server 2>/dev/null
 for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 $server 2>/dev/null || break; sleep 0.1; done; rm -rf "$0") &
wait $server`;
/** Our ends of those files: one that is forgotten would be closed. */
const keptOpen: unknown[] = [];

async function launch(): Promise<TestPostgres> {
  const user = await serverUser();
  const binaries = await binariesFor(user, cache);
  const source = await migratedCluster(binaries, user);
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-test-"));
  await makePassable(folder);
  if (user) await chown(folder, user.uid, user.gid);
  const cluster = join(folder, "cluster");
  await promisify(execFile)("cp", ["-a", source, cluster]);
  const port = await freePort();
  const url = (database: string): string => serverUrl(port, password, database);
  const startOnce = async (): Promise<void> => {
    const child = spawnServer({
      command: "/bin/sh",
      args: ["-c", untilParentDies, folder, join(binaries, "bin", "postgres"), ...serverFlags(cluster, port, fast)],
      user,
      cwd: cluster,
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    });
    child.unref();
    // The pipe must not keep this process alive, only end with it.
    const pipe = child.stdio[3];
    if (pipe && "unref" in pipe && typeof pipe.unref === "function") pipe.unref();
    keptOpen.push(pipe);
    let gone: string | null = null;
    child.once("exit", (code) => (gone = `the server ended with ${code}`));
    await waitReady(url("postgres"), 30_000, () => gone);
  };
  // After a crash the old server's processes may hold its shared memory for a moment.
  const start = (): Promise<void> => tryAgain(startOnce, 10);
  const crash = async (): Promise<void> => {
    const running = await readPidFile(cluster);
    if (!running) return;
    process.kill(running.pid, "SIGQUIT");
    await waitGone(running.pid, 10_000);
    await rm(join(cluster, "postmaster.pid"), { force: true });
  };
  await start();
  return {
    url,
    crash,
    start,
    restart: async () => {
      await crash();
      await start();
    },
  };
}

/** A stopped cluster that holds the migrated template database; made once per migrations and server version. */
async function migratedCluster(binaries: string, user: ServerUser): Promise<string> {
  const hash = createHash("sha256").update(binaries);
  for (const migration of await readMigrations(join(findRoot(), "prisma", "migrations")))
    hash.update(migration.checksum);
  await makePassable(cache);
  const cluster = join(cache, `cluster-${hash.digest("hex").slice(0, 16)}`);
  if (existsSync(join(cluster, "PG_VERSION"))) return cluster;
  const part = `${cluster}.new-${process.pid}`;
  await initCluster({ binaries, cluster: part, user, password, flags: ["--no-sync", "--wal-segsize=4"] });
  const port = await freePort();
  const child = spawnServer({
    command: join(binaries, "bin", "postgres"),
    args: serverFlags(part, port, fast),
    user,
    cwd: part,
    stdio: "ignore",
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  await waitReady(serverUrl(port, password, "postgres"), 30_000, () => null);
  const server = { url: (database: string) => serverUrl(port, password, database) };
  await administer(server as TestPostgres, `create database ${template}`);
  await migrate(server.url(template));
  child.kill("SIGINT");
  await ended;
  try {
    await rename(part, cluster);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    // Another process made it first.
    if (!existsSync(join(cluster, "PG_VERSION"))) throw error;
  }
  return cluster;
}
