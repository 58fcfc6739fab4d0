/**
 * What the folder of a sandbox says about it, so that any process of this deployment can find, enter and end it. Invariant: a
 * process number alone is never trusted, only with the time that process started: numbers are used again.
 */
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { startOf } from "../shared/process-start.ts";

const ProcessFact = z.object({ pid: z.int().min(2), start: z.string() });
export type ProcessFact = z.infer<typeof ProcessFact>;

const amount = z.number().nullable();
const HeldSpec = z.object({
  id: z.string(),
  labels: z.record(z.string(), z.string()),
  resources: z.object({ cpus: amount, memoryMb: amount, pids: amount, diskMb: amount }),
  workdir: z.string().nullable(),
  environment: z.record(z.string(), z.string()),
  mounts: z.array(z.object({ source: z.string(), target: z.string(), readOnly: z.boolean() })),
  leaseMs: z.number(),
  maxLifeMs: z.number(),
});
/** What a sandbox without image, network and services is made of. */
export type HeldSpec = z.infer<typeof HeldSpec>;

const HeldRecord = z.object({
  id: z.string(),
  labels: z.record(z.string(), z.string()),
  createdAtMs: z.number(),
  /** Process 1 of the sandbox as the host sees it. */
  first: ProcessFact,
  keeper: ProcessFact,
  /** Whom commands run as, where that is not who we are. */
  uid: z.int().nullable(),
  maxPids: z.int(),
  cgroups: z.object({
    folders: z.array(z.string()),
    joins: z.array(z.string()),
    oomCounter: z.string().nullable(),
  }),
  workdir: z.string(),
  environment: z.record(z.string(), z.string()),
  /** As it was asked for, to make it anew; absent in those of earlier releases. */
  spec: HeldSpec.optional(),
});
export type HeldRecord = z.infer<typeof HeldRecord>;

const recordPath = (folder: string): string => join(folder, "sandbox.json");

export async function writeRecord(folder: string, record: HeldRecord): Promise<void> {
  await writeWhole(recordPath(folder), JSON.stringify(record));
}

/** Null when there is none, or none that is whole. */
export async function readRecord(folder: string): Promise<HeldRecord | null> {
  const text = await readFile(recordPath(folder), "utf8").catch(() => null);
  if (text === null) return null;
  try {
    const parsed = HeldRecord.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/** From now on nobody finds it, and its folder counts as that of one that is being opened. */
export async function dropRecord(folder: string): Promise<void> {
  await rm(recordPath(folder), { force: true });
}

/** The keeper ends the sandbox at this time. */
export async function writeLease(folder: string, untilMs: number): Promise<void> {
  await writeWhole(join(folder, "lease"), `${Math.ceil(untilMs / 1000)}\n`);
}

/** Milliseconds of the wall clock; null when the sandbox's folder is gone. */
export async function readLease(folder: string): Promise<number | null> {
  const text = await readFile(join(folder, "lease"), "utf8").catch(() => null);
  return text === null ? null : Number(text.trim()) * 1000;
}

async function writeWhole(path: string, text: string): Promise<void> {
  const beside = `${path}.${process.pid}.new`;
  await writeFile(beside, text, { mode: 0o600 });
  await rename(beside, path);
}

export const isAlive = async ({ pid, start }: ProcessFact): Promise<boolean> => (await startOf(pid)) === start;

/** Ends exactly that process; one that is gone is ended. */
export async function killProcess(fact: ProcessFact): Promise<void> {
  if (!(await isAlive(fact))) return;
  try {
    process.kill(fact.pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
