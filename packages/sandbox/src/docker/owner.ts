/**
 * Which process made a thing of the daemon's, as a label, so that others of its machine can tell whether it still lives: what a dead
 * one was making will never be finished. Invariant: nobody is taken for dead whose machine or process namespace is not ours.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { startIn, startOf } from "../shared/process-start.ts";

/** This process. Empty where the machine does not tell. */
export function thisOwner(): string {
  try {
    const start = startIn(readFileSync("/proc/self/stat", "latin1"));
    return start === null ? "" : `${thisPlace()}.${process.pid}.${start}`;
  } catch {
    // No Linux: the daemon runs in a machine of its own.
    return "";
  }
}

/** Since its last start, and as this namespace counts processes. */
function thisPlace(): string {
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  return `${boot}.${/\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? ""}`;
}

/** True only where it is known. @param owner a label's value */
export async function isDeadOwner(owner: string | undefined): Promise<boolean> {
  const [boot, namespace, pid, start] = (owner ?? "").split(".");
  if (start === undefined) return false;
  try {
    if (`${boot}.${namespace}` !== thisPlace()) return false;
  } catch {
    return false;
  }
  return (await startOf(Number(pid))) !== start;
}
