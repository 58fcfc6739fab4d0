/** Processes of one stack as the system sees them (Linux: /proc). Nothing here touches a process outside the given tree. */
import { readdirSync, readFileSync } from "node:fs";
import type { Part } from "../../apps/cli/src/start/options.ts";

export interface SystemProcess {
  readonly pid: number;
  readonly parent: number;
  /** As other users of the machine may read it. */
  readonly commandLine: string;
}

/** Every process that lives now and may be read. */
function systemProcesses(): SystemProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        // The name in parentheses may hold blanks and parentheses itself; state and parent follow the last one.
        const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        if (state === "Z") return [];
        const commandLine = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return [{ pid: Number(name), parent: Number(parent), commandLine }];
      } catch {
        // It ended between the two reads.
        return [];
      }
    });
}

/** `root` and everything it started, directly or not. */
export function processTree(root: number): SystemProcess[] {
  const all = systemProcesses();
  const found = all.filter(({ pid }) => pid === root);
  for (let at = 0; at < found.length; at++) found.push(...all.filter(({ parent }) => parent === found[at]?.pid));
  return found;
}

/** The fleet is no process of its own: its loop runs in the supervisor. */
const marks: Record<Exclude<Part, "web" | "fleet">, string> = {
  api: "apps/api/dist/main.mjs",
  worker: "apps/worker/dist/main.mjs",
  "gpu-worker": "-m rolldeck_gpu_worker",
};
export type KillablePart = keyof typeof marks;

/** The supervised process of a part; null while there is none. */
export const processOf = (supervisor: number, part: KillablePart): number | null =>
  processTree(supervisor).find(({ parent, commandLine }) => parent === supervisor && commandLine.includes(marks[part]))
    ?.pid ?? null;

export function isAlive(pid: number): boolean {
  return systemProcesses().some((each) => each.pid === pid);
}
