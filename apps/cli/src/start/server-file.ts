/** `server.json` in the data folder: who serves it, so that other commands find the address and a second start is refused. */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";

export const ServerFile = z.object({ pid: z.int(), url: z.string(), startedAt: z.string() });
export type ServerFile = z.infer<typeof ServerFile>;

const fileIn = (dataFolder: string): string => path.join(dataFolder, "server.json");

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** The live server of a data folder, or null. */
export function readServerFile(dataFolder: string): ServerFile | null {
  let body: unknown;
  try {
    body = JSON.parse(readFileSync(fileIn(dataFolder), "utf8"));
  } catch {
    // None there, or one that a machine left half-written when it died.
    return null;
  }
  const parsed = ServerFile.safeParse(body);
  return parsed.success && isAlive(parsed.data.pid) ? parsed.data : null;
}

export function writeServerFile(dataFolder: string, url: string): void {
  const body: ServerFile = { pid: process.pid, url, startedAt: new Date().toISOString() };
  const part = `${fileIn(dataFolder)}.${process.pid}`;
  writeFileSync(part, `${JSON.stringify(body)}\n`, { mode: 0o600 });
  // Whoever looks sees all of it or nothing.
  renameSync(part, fileIn(dataFolder));
}

export const removeServerFile = (dataFolder: string): void => rmSync(fileIn(dataFolder), { force: true });
