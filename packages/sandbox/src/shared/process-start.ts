/** When a process of this machine started: with its number, the only name of a process that is not given twice. */
import { readFile } from "node:fs/promises";

/** Set in a process's flags from its end on, while the others of its namespace are still being killed. */
const exiting = 0x4;

/** In the kernel's ticks; null when there is none of that number, or it is at its end or waits to be buried. */
export async function startOf(pid: number): Promise<string | null> {
  return startIn(await readFile(`/proc/${pid}/stat`, "latin1").catch(() => ""));
}

/** @param stat what /proc says of a process */
export function startIn(stat: string): string | null {
  if (stat === "") return null;
  const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const atItsEnd = state === "Z" || state === "X" || (Number(rest[5]) & exiting) !== 0;
  return atItsEnd ? null : (rest[18] ?? null);
}
