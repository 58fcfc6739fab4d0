/**
 * Processes of this machine by a mark in their environment, which their children have too. Invariant: a signal goes only to a process
 * that carried the mark when it was looked at and is still the same one, by the time that it started.
 */
import { readdir, readFile } from "node:fs/promises";
import type { ProcessFact } from "./placement-folder.ts";

/** When it started, as the kernel counts; null where there is none, or only what its parent has not yet taken note of. */
export async function processStart(pid: number): Promise<string | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    // The name may hold blanks and brackets.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

async function carries(pid: number, mark: string): Promise<boolean> {
  try {
    return (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0").includes(mark);
  } catch {
    // Gone, or another account's.
    return false;
  }
}

/** Whether it is still that process, and one of ours. @param mark `NAME=value` */
export async function isMarked({ pid, start }: ProcessFact, mark: string): Promise<boolean> {
  return (await processStart(pid)) === start && (await carries(pid, mark));
}

export async function markedProcesses(mark: string): Promise<ProcessFact[]> {
  const found: ProcessFact[] = [];
  for (const name of await readdir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid < 2) continue;
    const start = await processStart(pid);
    if (start !== null && (await carries(pid, mark))) found.push({ pid, start });
  }
  return found;
}

/** Nothing happens to one that is gone, or whose number is another's by now. */
export async function signalMarked(fact: ProcessFact, mark: string, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  if (!(await isMarked(fact, mark))) return;
  try {
    process.kill(fact.pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
