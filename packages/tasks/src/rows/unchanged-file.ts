import { closeSync, fstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { basename } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";

/** Bytes of a file as it was when it was opened. @throws BoundaryError("infrastructure", "dataset_changed") */
export function readIfUnchanged(path: string, opened: Stats, start: number, length: number): Buffer {
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(length);
    if (isSame(fstatSync(file), opened) && readSync(file, bytes, 0, length, start) === length) return bytes;
  } finally {
    closeSync(file);
  }
  throw changed(path);
}

/** @throws BoundaryError("infrastructure", "dataset_changed") when the file is not the one that was opened */
export function refuseChanged(path: string, opened: Stats): void {
  if (!isSame(statSync(path, { throwIfNoEntry: false }), opened)) throw changed(path);
}

const isSame = (now: Stats | undefined, opened: Stats): boolean =>
  now !== undefined && now.mtimeMs === opened.mtimeMs && now.size === opened.size && now.ino === opened.ino;

const changed = (path: string): BoundaryError =>
  new BoundaryError("infrastructure", "dataset_changed", `${basename(path)} changed after it was opened`);
