/** A folder of this user's own in a place where everybody can make some. */
import { lstatSync, mkdirSync } from "node:fs";
import { BoundaryError } from "@rolldeck/contracts/errors";

/**
 * Makes it where it is not there. What others could have put into it would be built and run.
 * @returns the path @throws BoundaryError("infrastructure", "not_own") for one that others made or can write to, and for a link
 */
export function ownFolder(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = lstatSync(path);
  const isOwn = found.uid === (process.getuid?.() ?? found.uid) && (found.mode & 0o022) === 0;
  if (found.isDirectory() && isOwn) return path;
  throw new BoundaryError("infrastructure", "not_own", `${path} is not this user's alone: remove it`);
}
