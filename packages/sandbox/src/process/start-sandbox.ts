/**
 * Starts the keeper of a namespace sandbox and waits until the sandbox is up. Invariant: one that does not come up is ended, keeper
 * and all.
 */
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { startOf } from "../shared/process-start.ts";
import type { SandboxCgroups } from "./cgroups.ts";
import { enterProgram } from "./enter-program.ts";
import { type HeldRecord, type HeldSpec, type ProcessFact, writeLease, writeRecord } from "./held-record.ts";
import { hostArchitecture } from "./host-ailment.ts";
import { firstProcess, keeperScript } from "./keeper-script.ts";
import { etcFiles, homeFolder, viewArguments, type viewFiles } from "./sandbox-view.ts";
import { seccompFilter } from "./seccomp-filter.ts";

/** Nobody's number on all systems that we know. */
export const nobody = 65_534;
const startMs = 15_000;

/** Where a spec says nothing. */
const defaults = { cpus: 2, memoryMb: 2048, pids: 256, diskMb: 512 };

export const limitsOf = ({ resources }: Pick<HeldSpec, "resources">) => ({
  cpus: resources.cpus ?? defaults.cpus,
  memoryMb: resources.memoryMb ?? defaults.memoryMb,
  pids: resources.pids ?? defaults.pids,
  diskMb: resources.diskMb ?? defaults.diskMb,
});

export interface Opening {
  readonly folder: string;
  readonly spec: HeldSpec;
  readonly cgroups: SandboxCgroups;
  readonly uid: number | null;
}

/** @throws when it does not come up */
export async function startSandbox(opening: Opening, signal: AbortSignal): Promise<HeldRecord> {
  const { folder, spec, cgroups, uid } = opening;
  const createdAtMs = Date.now();
  const workdir = spec.workdir ?? homeFolder;
  const { pids, diskMb, memoryMb } = limitsOf(spec);
  await writeLease(folder, createdAtMs + spec.leaseMs);
  const own = uid ?? process.getuid?.() ?? nobody;
  const view = await viewArguments({ uid: own, gid: own, workdir, diskMb, memoryMb, mounts: spec.mounts });
  const become = uid === null ? [] : ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
  const keeper = await startKeeper(opening, createdAtMs, [...become, ...view, ...firstProcess], signal);
  const record: HeldRecord = {
    ...{ id: spec.id, labels: { ...spec.labels }, createdAtMs, keeper: keeper.keeper, first: keeper.first },
    ...{ uid, maxPids: pids, workdir },
    cgroups: { folders: [...cgroups.folders], joins: [...cgroups.joins], oomCounter: cgroups.oomCounter },
    environment: {
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      ...{ HOME: homeFolder, USER: "nobody", LANG: "C.UTF-8" },
      ...spec.environment,
    },
    spec,
  };
  await writeRecord(folder, record);
  return record;
}

/** @throws when the sandbox does not come up; its keeper is ended then */
async function startKeeper(
  { folder, spec, cgroups }: Opening,
  createdAtMs: number,
  command: readonly string[],
  signal: AbortSignal,
): Promise<{ keeper: ProcessFact; first: ProcessFact }> {
  const files = await openViewFiles(folder);
  const until = String(Math.ceil((createdAtMs + spec.maxLifeMs) / 1000));
  const colons = (paths: readonly string[]) => paths.map((path) => `${path}:`).join("");
  const child = spawn(
    "/bin/bash",
    [
      ...["--noprofile", "--norc", "-c", keeperScript, "rolldeck-keeper"],
      ...[folder, until, colons(cgroups.folders), colons(cgroups.joins), ...command],
    ],
    {
      ...{ cwd: "/", detached: true, stdio: ["ignore", "pipe", "ignore", ...files] },
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
    },
  );
  for (const file of files) closeSync(file);
  child.unref();
  try {
    await readyLine(child.stdout, signal);
    const first = await factOf(childPid(await readFile(join(folder, "info"), "utf8")));
    return { first, keeper: await factOf(child.pid ?? 0) };
  } catch (error) {
    const said = (await readFile(join(folder, "errors"), "utf8").catch(() => "")).trim().slice(0, 500);
    child.kill("SIGKILL");
    if (signal.aborted || error instanceof BoundaryError) throw error;
    throw new Error(said === "" ? "it did not come up" : said, { cause: error });
  } finally {
    child.stdout?.destroy();
  }
}

/** In the order of `viewFiles`, from 3 on. */
async function openViewFiles(folder: string): Promise<number[]> {
  const architecture = hostArchitecture();
  if (architecture === null)
    throw new BoundaryError("sandbox", "refused", "process sandboxes need an x64 or arm64 machine");
  const own = process.getuid?.() === 0 ? nobody : (process.getuid?.() ?? nobody);
  const { passwd, group, hosts } = etcFiles(own, own);
  const contents = {
    ...{ filter: seccompFilter(architecture), passwd, group, hosts, enter: enterProgram(architecture) },
  } satisfies Record<keyof typeof viewFiles, Uint8Array | string>;
  const files: number[] = [];
  for (const [name, content] of Object.entries(contents)) {
    const path = join(folder, `view-${name}`);
    await writeFile(path, content, { mode: 0o600 });
    files.push(openSync(path, "r"));
  }
  return files;
}

/** Waits for process 1 to say that all is in place. */
async function readyLine(stream: NodeJS.ReadableStream | null, signal: AbortSignal): Promise<void> {
  if (stream === null) throw new Error("the keeper has no output");
  const limit = AbortSignal.any([signal, AbortSignal.timeout(startMs)]);
  await new Promise<void>((resolve, reject) => {
    const onAbort = () => reject(limit.reason);
    limit.addEventListener("abort", onAbort, { once: true });
    stream.once("data", () => resolve());
    stream.once("end", () => reject(new Error("it ended before it was up")));
    stream.once("error", reject);
  });
}

const childPid = (info: string): number => Number(/"child-pid": (\d+)/.exec(info)?.[1] ?? 0);

async function factOf(pid: number): Promise<ProcessFact> {
  const start = await startOf(pid);
  if (start === null) throw new Error("its first process is gone");
  return { pid, start };
}
