/**
 * Control groups of a sandbox, version 1 or 2, where this process may make them (root, mostly). Invariants: a limit that could
 * not be set is not claimed; folders are removed with their sandbox, and those left by a dead one can be.
 */
import { access, constants, mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxResources } from "@rolldeck/contracts/ports/sandbox";

export interface SandboxCgroups {
  /** Folders to remove when the sandbox is gone. */
  readonly folders: readonly string[];
  /** Files that take in a process by its id. */
  readonly joins: readonly string[];
  /** File that counts what the kernel ended for memory, or null. */
  readonly oomCounter: string | null;
}
export const noCgroups: SandboxCgroups = { folders: [], joins: [], oomCounter: null };

export type CgroupVersion = 1 | 2;
const root = "/sys/fs/cgroup";

/** Which of them can be used here; null: none. */
export async function usableCgroups(): Promise<CgroupVersion | null> {
  if (process.getuid?.() !== 0) return null;
  const can = async (path: string) =>
    access(path, constants.W_OK).then(
      () => true,
      () => false,
    );
  const available = await readFile(join(root, "cgroup.controllers"), "utf8").catch(() => null);
  if (available !== null) {
    const wanted = ["cpu", "memory", "pids"];
    if (!wanted.every((one) => available.split(/\s+/).includes(one))) return null;
    return writeFile(join(root, "cgroup.subtree_control"), wanted.map((one) => `+${one}`).join(" ")).then(
      () => 2,
      () => null,
    );
  }
  return (await can(join(root, "memory"))) && (await can(join(root, "pids"))) ? 1 : null;
}

type Limits = { readonly [K in keyof SandboxResources]: number };
type Setting = readonly [file: string, value: string, needed: boolean];

const mebibyte = 1024 * 1024;
const cpuPeriod = 100_000;
/** bubblewrap, process 1 and the one that enters count, too, and are none of the sandbox's. */
const ownPids = 3;

const settings1 = ({ cpus, memoryMb, pids }: Limits): Readonly<Record<string, readonly Setting[]>> => ({
  memory: [
    ["memory.limit_in_bytes", String(memoryMb * mebibyte), true],
    // Where swap is not counted the file is missing.
    ["memory.memsw.limit_in_bytes", String(memoryMb * mebibyte), false],
  ],
  pids: [["pids.max", String(pids + ownPids), true]],
  cpu: [
    ["cpu.cfs_period_us", String(cpuPeriod), true],
    ["cpu.cfs_quota_us", String(Math.max(1000, Math.round(cpus * cpuPeriod))), true],
  ],
});

const settings2 = ({ cpus, memoryMb, pids }: Limits): readonly Setting[] => [
  ["memory.max", String(memoryMb * mebibyte), true],
  ["memory.swap.max", "0", false],
  ["memory.oom.group", "0", false],
  ["pids.max", String(pids + ownPids), true],
  ["cpu.max", `${Math.max(1000, Math.round(cpus * cpuPeriod))} ${cpuPeriod}`, true],
];

/** @throws what the file system says when a needed limit can't be set; nothing is left then */
export async function makeCgroups(version: CgroupVersion, name: string, limits: Limits): Promise<SandboxCgroups> {
  const parts: [folder: string, settings: readonly Setting[]][] =
    version === 2
      ? [[join(root, name), settings2(limits)]]
      : Object.entries(settings1(limits)).map(([controller, settings]) => [join(root, controller, name), settings]);
  const folders = cgroupFolders(version, name);
  try {
    for (const [folder, settings] of parts) {
      await mkdir(folder);
      for (const [file, value, needed] of settings) {
        await writeFile(join(folder, file), value).catch((error: unknown) => {
          if (needed) throw error;
        });
      }
    }
  } catch (error) {
    await removeCgroups(folders);
    throw error;
  }
  const memory = version === 2 ? join(root, name) : join(root, "memory", name);
  return {
    folders,
    joins: folders.map((folder) => join(folder, "cgroup.procs")),
    oomCounter: join(memory, version === 2 ? "memory.events" : "memory.oom_control"),
  };
}

/** Those that a sandbox of this name has, or would have. */
export const cgroupFolders = (version: CgroupVersion, name: string): string[] =>
  version === 2 ? [join(root, name)] : ["memory", "pids", "cpu"].map((controller) => join(root, controller, name));

/** How often the kernel ended something of this sandbox for memory. */
export async function oomKills(cgroups: SandboxCgroups): Promise<number> {
  if (cgroups.oomCounter === null) return 0;
  const text = await readFile(cgroups.oomCounter, "utf8").catch(() => "");
  return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
}

/** Ends what is still in them and removes them; what is not there is removed. @returns whether all are gone */
export async function removeCgroups(folders: readonly string[]): Promise<boolean> {
  let allGone = true;
  for (const folder of folders) {
    let gone = false;
    for (let attempt = 0; attempt < 100 && !gone; attempt += 1) {
      gone = await rmdir(folder).then(
        () => true,
        (error: NodeJS.ErrnoException) => error.code === "ENOENT",
      );
      if (!gone) {
        await endMembers(folder);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
    allGone &&= gone;
  }
  return allGone;
}

async function endMembers(folder: string): Promise<void> {
  const text = await readFile(join(folder, "cgroup.procs"), "utf8").catch(() => "");
  for (const pid of text.split("\n").filter((line) => /^[1-9]\d*$/.test(line))) {
    try {
      process.kill(Number(pid), "SIGKILL");
    } catch {
      // It ended by itself.
    }
  }
}
