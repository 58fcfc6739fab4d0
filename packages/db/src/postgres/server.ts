/**
 * Making a cluster, starting a server on it, and seeing it stop. The server listens on loopback TCP only, asks for a password,
 * and has no socket file.
 */
import { type ChildProcess, execFile, type StdioOptions, spawn } from "node:child_process";
import { chmod, chown, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { BoundaryError } from "@rolldeck/contracts/errors";
import pg from "pg";
import type { ServerUser } from "./binaries.ts";

export const databaseUser = "rolldeck";

const commonFlags = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "200",
  timezone: "UTC",
  log_timezone: "UTC",
  // Our statements are short and estimated roughly: compiling them costs more than it saves.
  jit: "off",
};

/** Makes a new cluster; a half-made one never lies at `cluster`. */
export async function initCluster(options: {
  readonly binaries: string;
  readonly cluster: string;
  readonly user: ServerUser;
  readonly password: string;
  readonly flags?: readonly string[];
}): Promise<void> {
  const { user, cluster } = options;
  const part = `${cluster}.part-${process.pid}`;
  const secret = await mkdtemp(join(tmpdir(), "rolldeck-init-"));
  const passwordFile = join(secret, "password");
  try {
    await rm(part, { recursive: true, force: true });
    await mkdir(part, { recursive: true, mode: 0o700 });
    await writeFile(passwordFile, `${options.password}\n`, { mode: 0o600 });
    if (user) for (const path of [part, secret, passwordFile]) await chown(path, user.uid, user.gid);
    const args = [
      `--pgdata=${part}`,
      `--username=${databaseUser}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      ...(options.flags ?? []),
    ];
    await promisify(execFile)(join(options.binaries, "bin", "initdb"), args, {
      ...account(user),
      cwd: dirname(part),
      env: serverEnv(),
    });
    await rename(part, cluster);
  } catch (cause) {
    await rm(part, { recursive: true, force: true });
    throw new BoundaryError("infrastructure", "initdb-failed", "the embedded database could not be made", { cause });
  } finally {
    await rm(secret, { recursive: true, force: true });
  }
}

/** Flags of the `postgres` program. */
export function serverFlags(cluster: string, port: number, extra: Readonly<Record<string, string>> = {}): string[] {
  const settings = Object.entries({ ...commonFlags, ...extra });
  return ["-D", cluster, "-p", String(port), ...settings.flatMap(([name, value]) => ["-c", `${name}=${value}`])];
}

export function spawnServer(options: {
  readonly command: string;
  readonly args: readonly string[];
  readonly user: ServerUser;
  readonly cwd: string;
  readonly stdio: StdioOptions;
  readonly detached?: boolean;
}): ChildProcess {
  return spawn(options.command, options.args, {
    ...account(options.user),
    cwd: options.cwd,
    env: serverEnv(),
    stdio: options.stdio,
    detached: options.detached ?? false,
  });
}

const account = (user: ServerUser): { uid?: number; gid?: number } => (user ? { uid: user.uid, gid: user.gid } : {});
/** PG* variables of the caller must not steer the server. */
const serverEnv = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH, LC_ALL: "C" });

export async function freePort(): Promise<number> {
  return new Promise((found, failed) => {
    const probe = createServer();
    probe.once("error", failed);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => (address && typeof address === "object" ? found(address.port) : failed(new Error("no port"))));
    });
  });
}

export const serverUrl = (port: number, password: string, database: string): string =>
  `postgresql://${databaseUser}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;

/** Waits until the server answers a query. `gone` tells why it no longer can. @throws BoundaryError("infrastructure") */
export async function waitReady(url: string, limitMs: number, gone: () => string | null): Promise<void> {
  const end = Date.now() + limitMs;
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
    client.on("error", () => undefined);
    try {
      await client.connect();
      await client.query("select 1");
      return;
    } catch (cause) {
      const reason = gone() ?? (Date.now() > end ? `no answer within ${limitMs} ms` : null);
      if (reason) {
        throw new BoundaryError("infrastructure", "database-not-started", `the embedded database: ${reason}`, {
          cause,
        });
      }
      await sleep(50);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

/** A start that failed is tried again: a port may be lost to another program, shared memory may still be held. */
export async function tryAgain<T>(start: () => Promise<T>, tries: number): Promise<T> {
  for (let left = tries - 1; ; left--) {
    try {
      return await start();
    } catch (error) {
      if (left <= 0) throw error;
      await sleep(200);
    }
  }
}

export interface PidFile {
  readonly pid: number;
  readonly port: number;
}
/** What the cluster's postmaster.pid says; null when there is none (or it is half-written). */
export async function readPidFile(cluster: string): Promise<PidFile | null> {
  const text = await readFile(join(cluster, "postmaster.pid"), "utf8").catch(() => "");
  const lines = text.split("\n");
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  return pid > 0 && port > 0 ? { pid, port } : null;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

export async function waitGone(pid: number, limitMs: number): Promise<boolean> {
  for (const end = Date.now() + limitMs; isAlive(pid); await sleep(20)) if (Date.now() > end) return false;
  return true;
}

/** Makes a folder that the server's account can pass through but others can't list. */
export async function makePassable(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o711);
}
