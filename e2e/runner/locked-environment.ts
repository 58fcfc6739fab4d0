/**
 * Python environments of committed lock files, outside the clone and named by their lock's hash, so that clones share them and a
 * changed lock makes a new one. Only for tests.
 */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { withMachineLock } from "./machine-lock.ts";
import { type CommandEnd, runCommand } from "./run-command.ts";

const minute = 60_000;
export type Say = (line: string) => void;

/** An environment could not be made; the message says at which step and what to do. */
export class EnvironmentError extends Error {
  override readonly name = "EnvironmentError";
}

export interface LockedEnvironment {
  readonly name: string;
  /** Folder below `$XDG_CACHE_HOME/rolldeck` (by default ~/.cache). */
  readonly shelf: string;
  /** requirements.lock: every version. Its folder's .pth files go into the environment. */
  readonly lock: string;
  /** Its processes start many at a time: what each would compile for itself is compiled once. */
  readonly compiled?: true;
}

export const lockHashOf = (lock: string): string => createHash("sha256").update(readFileSync(lock)).digest("hex");

const cacheFolder = (shelf: string): string =>
  path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), ".cache"), "rolldeck", shelf);

const run = (command: string, args: readonly string[], limitMs = 9 * minute): Promise<CommandEnd> =>
  runCommand(command, args, {
    cwd: import.meta.dirname,
    env: { PIP_DISABLE_PIP_VERSION_CHECK: "1", PYTHONDONTWRITEBYTECODE: "1" },
    limitMs,
    keepOutput: true,
  });

async function mustRun(what: string, command: string, args: readonly string[]): Promise<string> {
  const end = await run(command, args);
  if (end.code === 0) return end.output;
  const why = end.timedOut ? "over its time limit" : `exit ${end.code}`;
  throw new EnvironmentError(`${what}: ${why}\n${end.output.split("\n").slice(-12).join("\n")}`);
}

/** The packages are pinned for this one; others resolve to other versions, or to builds of several GB. */
async function python311(): Promise<string> {
  for (const command of ["python3.11", "python3"]) {
    const end = await run(command, ["-c", "import sys; print(*sys.version_info[:2])"], minute / 2);
    if (end.code === 0 && end.output.trim() === "3 11") return command;
  }
  throw new EnvironmentError("Python 3.11 was not found (Debian 12: apt install python3.11 python3.11-venv)");
}

/** No package of a GPU's maker may come along: the environments are for CPUs, and those fill a disk. */
async function refuseCuda(python: string): Promise<void> {
  const listed = await mustRun("pip list", python, ["-m", "pip", "list", "--format=freeze"]);
  const found = listed.split("\n").filter((line) => /^(nvidia|cuda|triton)\b/i.test(line));
  if (found.length > 0)
    throw new EnvironmentError(
      `torch came as a CUDA build (${found.slice(0, 3).join(", ")}, …): set ROLLDECK_TORCH_INDEX to an index of CPU wheels`,
    );
}

async function install({ name, lock, compiled }: LockedEnvironment, folder: string, python: string): Promise<void> {
  const torch = /^torch==\S+$/m.exec(readFileSync(lock, "utf8"))?.[0];
  const pip = ["-m", "pip", "install", "--quiet", ...(compiled ? [] : ["--no-compile"])];
  await mustRun("venv", await python311(), ["-m", "venv", folder]);
  await mustRun("pip", python, [...pip, "--upgrade", "pip", "setuptools", "wheel"]);
  const index = process.env.ROLLDECK_TORCH_INDEX;
  // First, so that no other build of it is resolved.
  if (torch !== undefined) await mustRun(torch, python, [...pip, ...(index ? ["--index-url", index] : []), torch]);
  // The lock is whole: nothing is resolved, and what upper bounds would refuse is what was tried.
  await mustRun(`packages of ${name}`, python, [...pip, "--no-deps", "-r", lock]);
  await refuseCuda(python);
  // What has to happen before any import of that environment; Debian's own sitecustomize hides one of a venv.
  const sitePackages = path.join(folder, "lib/python3.11/site-packages");
  for (const file of readdirSync(path.dirname(lock)).filter((each) => each.endsWith(".pth")))
    copyFileSync(path.join(path.dirname(lock), file), path.join(sitePackages, file));
}

/**
 * The interpreter of an environment, made first if it is missing: by one process at a time, while others wait for it. Those of other
 * locks are removed when nobody has asked for them for a day.
 * @throws EnvironmentError
 */
export async function prepareLocked(environment: LockedEnvironment, say: Say, make: Make = install): Promise<string> {
  const { name, shelf, lock } = environment;
  const cache = cacheFolder(shelf);
  const folder = path.join(cache, `${name}-${lockHashOf(lock).slice(0, 12)}`);
  const python = path.join(folder, "bin/python");
  const whole = path.join(folder, wholeMark);
  if (!existsSync(whole)) {
    const place = createHash("sha256").update(`${cache}/${name}`).digest("hex").slice(0, 32);
    const onWait = (): void => say(`${name}: waits until another process has made its environment`);
    await withMachineLock(place, onWait, async () => {
      if (!existsSync(whole)) await makeAnew(environment, folder, python, say, make);
    });
  }
  // For whoever makes another one: this one is in use.
  const now = new Date();
  utimesSync(whole, now, now);
  return python;
}

const wholeMark = ".rolldeck-whole";
const unusedMs = 24 * 60 * minute;
type Make = (environment: LockedEnvironment, folder: string, python: string) => Promise<void>;

/** Nobody else makes one of this name meanwhile, so that what is not whole was left by one that was killed. */
async function makeAnew(
  environment: LockedEnvironment,
  folder: string,
  python: string,
  say: Say,
  make: Make,
): Promise<void> {
  const { name } = environment;
  const cache = path.dirname(folder);
  mkdirSync(cache, { recursive: true });
  const names = readdirSync(cache).filter((each) => each.startsWith(`${name}-`));
  for (const old of names.map((each) => path.join(cache, each)))
    if (isUnused(old)) rmSync(old, { recursive: true, force: true });
  const started = Date.now();
  say(`${name}: making its environment in ${folder}`);
  await make(environment, folder, python);
  writeFileSync(path.join(folder, wholeMark), "");
  say(`${name}: installed in ${Math.round((Date.now() - started) / 1000)} s`);
}

function isUnused(folder: string): boolean {
  const mark = statSync(path.join(folder, wholeMark), { throwIfNoEntry: false });
  return mark === undefined || Date.now() - mark.mtimeMs > unusedMs;
}
