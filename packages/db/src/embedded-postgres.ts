/**
 * The embedded database of `npm start`. Invariants: data live on in `<dataDir>/cluster` from start to start; the password lies
 * in `<dataDir>/password` (0600); the server survives the death of the process that started it and is adopted by the next;
 * a postmaster.pid left by a machine that died never blocks a start.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { open, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import pg from "pg";
import { binariesFor, binariesVersion, canEnter, serverUser } from "./postgres/binaries.ts";
import {
  freePort,
  initCluster,
  isAlive,
  makePassable,
  type PidFile,
  readPidFile,
  serverFlags,
  serverUrl,
  spawnServer,
  tryAgain,
  waitGone,
  waitReady,
} from "./postgres/server.ts";

const database = "rolldeck";
const startLimitMs = 120_000;
const stopLimitMs = 20_000;
const maxLogBytes = 10_000_000;

export interface EmbeddedPostgres {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** True when the server ran already (a supervisor before us died). */
  readonly adopted: boolean;
  /** Ends the server after its open transactions are rolled back; data stay. */
  stop(): Promise<void>;
}

/** Starts, adopts or continues the server whose data lie in `dataDir`; makes it on first use. */
export async function startEmbeddedPostgres(options: {
  readonly dataDir: string;
  readonly log?: (line: string) => void;
}): Promise<EmbeddedPostgres> {
  const { dataDir } = options;
  const log = options.log ?? (() => undefined);
  await makePassable(dataDir);
  const cluster = join(dataDir, "cluster");
  const password = await readPassword(dataDir);
  const running = await runningServer(cluster);
  if (running) {
    log(`adopting the database server that runs already (process ${running.pid}, port ${running.port})`);
    return serve(running, password, true);
  }
  const user = await serverUser();
  if (!(await canEnter(dataDir, user))) {
    throw new BoundaryError(
      "infrastructure",
      "data-folder-closed",
      `the account that runs Postgres can't enter ${dataDir}: give another --data-dir`,
    );
  }
  const binaries = await binariesFor(user, dataDir);
  if (!existsSync(join(cluster, "PG_VERSION"))) {
    log("making the database");
    await initCluster({ binaries, cluster, user, password });
  }
  await refuseOtherMajor(cluster);
  return serve(await tryAgain(() => start(binaries, cluster, dataDir, password), 5), password, false);

  async function start(programs: string, folder: string, logFolder: string, secret: string): Promise<PidFile> {
    const port = await freePort();
    const logFile = join(logFolder, "postgres.log");
    await keepLogShort(logFile);
    const output = await open(logFile, "a", 0o600);
    const child = spawnServer({
      command: join(programs, "bin", "postgres"),
      args: serverFlags(folder, port),
      user,
      cwd: folder,
      stdio: ["ignore", output.fd, output.fd],
      detached: true,
    });
    let gone: string | null = null;
    child.once("error", (error) => (gone = error.message));
    child.once("exit", (code, signal) => (gone = `the server ended (${signal ?? code}); see ${logFile}`));
    child.unref();
    await output.close();
    await waitReady(serverUrl(port, secret, "postgres"), startLimitMs, () => gone);
    return { pid: child.pid ?? 0, port };
  }
}

/** Files of one major version can't be opened by another. */
async function refuseOtherMajor(cluster: string): Promise<void> {
  const made = (await readFile(join(cluster, "PG_VERSION"), "utf8")).trim();
  const ours = (await binariesVersion()).split(".")[0];
  if (made === ours) return;
  throw new BoundaryError(
    "infrastructure",
    "other-postgres-version",
    `the data in ${cluster} were made by Postgres ${made}, this Rolldeck brings ${ours}: move the folder away, or export from the older one`,
  );
}

async function serve(server: PidFile, password: string, adopted: boolean): Promise<EmbeddedPostgres> {
  await waitReady(serverUrl(server.port, password, "postgres"), startLimitMs, () =>
    isAlive(server.pid) ? null : "the server ended",
  );
  await ensureDatabase(serverUrl(server.port, password, "postgres"));
  return {
    url: serverUrl(server.port, password, database),
    ...server,
    adopted,
    stop: () => stopServer(server.pid),
  };
}

async function ensureDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rowCount } = await client.query("select 1 from pg_database where datname = $1", [database]);
    if (rowCount === 0) await client.query(`create database "${database}"`);
  } finally {
    await client.end();
  }
}

async function stopServer(pid: number): Promise<void> {
  if (!isAlive(pid)) return;
  process.kill(pid, "SIGINT");
  if (await waitGone(pid, stopLimitMs)) return;
  // Crash recovery at the next start makes good what a clean stop would have written.
  process.kill(pid, "SIGQUIT");
  await waitGone(pid, stopLimitMs);
}

/** The live server of this cluster; cleans a postmaster.pid whose process is gone or is another program. */
async function runningServer(cluster: string): Promise<PidFile | null> {
  for (let round = 0; round < 5; round++) {
    const found = await readPidFile(cluster);
    if (found) {
      if (isAlive(found.pid) && (await isServerOf(found.pid, cluster))) return found;
      break;
    }
    if (!existsSync(join(cluster, "postmaster.pid"))) return null;
    // Half-written: a server is just starting, or a machine died just then.
    await sleep(200);
  }
  await rm(join(cluster, "postmaster.pid"), { force: true });
  return null;
}

/** A pid may have been given to another program since; where the system can't tell, it is taken for the server. */
async function isServerOf(pid: number, cluster: string): Promise<boolean> {
  if (!existsSync("/proc/self/cmdline")) return true;
  const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return command.split("\0").includes(cluster);
}

async function readPassword(dataDir: string): Promise<string> {
  const file = join(dataDir, "password");
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const password = randomBytes(24).toString("base64url");
    await writeFile(file, `${password}\n`, { mode: 0o600, flag: "wx" });
    return password;
  }
}

async function keepLogShort(file: string): Promise<void> {
  const info = await stat(file).catch(() => null);
  if (info && info.size > maxLogBytes) await truncate(file, 0);
}
