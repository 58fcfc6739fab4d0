/**
 * Rows of a JSONL file, read where they lie: opening reads the file once, checks every row and keeps only where each
 * begins, so that a data set larger than memory can be trained on.
 *
 * Invariants: rows are verbatim (strings are not trimmed, normalised or filled in; fields the schema does not name are left
 * alone); a file that changed after it was opened gives no rows any more, never other ones.
 */
import { createHash } from "node:crypto";
import { closeSync, createReadStream, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import type { z } from "zod";

export interface RowFile<R> {
  readonly count: number;
  /** @throws RangeError past the end, BoundaryError("infrastructure") when the file is not the one that was opened */
  row(index: number): R;
  /** Eight hexadecimal digits of what the row says, as it was when the file was opened. @throws RangeError past the end */
  mark(index: number): string;
}

/** Bytes of one row; a longer one is refused before it is held. */
const maxRowBytes = 32 * 1024 * 1024;
const newline = 0x0a;

/** @throws InputError at `dataset` that names the first bad line, from 1, and what is wrong with it */
export async function openRowFile<S extends z.ZodType>(path: string, schema: S): Promise<RowFile<z.output<S>>> {
  const name = basename(path);
  const opened = await stat(path);
  const found: number[] = [];
  const hashes: number[] = [];
  for await (const line of linesOf(path, name)) {
    if (isBlank(line.bytes)) continue;
    parseRow(line.bytes, schema, `${name} line ${line.number}`);
    found.push(line.start);
    hashes.push(createHash("sha256").update(line.bytes).digest().readUInt32BE(0));
  }
  // Twelve bytes a row are all that stays; what follows a row up to the next is white space.
  const starts = Float64Array.from(found);
  const marks = Uint32Array.from(hashes);
  return {
    count: starts.length,
    row: (index) => {
      const start = starts[index];
      if (start === undefined) throw new RangeError(`${name} has ${starts.length} rows, not ${index}`);
      const end = starts[index + 1] ?? opened.size;
      return parseRow(readAgain(path, start, end - start, opened), schema, `${name} row ${index}`);
    },
    mark: (index) => {
      const mark = marks[index];
      if (mark === undefined) throw new RangeError(`${name} has ${marks.length} rows, not ${index}`);
      return mark.toString(16).padStart(8, "0");
    },
  };
}

interface Line {
  /** From 1. */
  readonly number: number;
  /** Byte offset in the file. */
  readonly start: number;
  readonly bytes: Buffer;
}

async function* linesOf(path: string, name: string): AsyncGenerator<Line> {
  let parts: Buffer[] = [];
  let held = 0;
  let start = 0;
  let number = 1;
  const line = (): Line => ({ number, start, bytes: parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts) });
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    for (let from = 0; from < chunk.length; ) {
      const at = chunk.indexOf(newline, from);
      const part = chunk.subarray(from, at === -1 ? chunk.length : at);
      held += part.length;
      if (held > maxRowBytes) throw badRow(`${name} line ${number}: longer than ${maxRowBytes} bytes`);
      parts.push(part);
      if (at === -1) break;
      yield line();
      start += held + 1;
      number += 1;
      parts = [];
      held = 0;
      from = at + 1;
    }
  }
  if (held > 0) yield line();
}

const isBlank = (bytes: Buffer): boolean => bytes.every((byte) => byte === 0x20 || byte === 0x0d || byte === 0x09);

/** Byte order marks are dropped; bytes that are not UTF-8 are refused. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

function parseRow<S extends z.ZodType>(bytes: Buffer, schema: S, where: string): z.output<S> {
  const parsed = schema.safeParse(parseJson(bytes, where));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.map(String).join(".") ?? "";
  throw badRow(`${where}: ${field === "" ? "" : `${field}: `}${issue?.message ?? "does not fit"}`);
}

function parseJson(bytes: Buffer, where: string): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch (cause) {
    throw badRow(`${where}: not JSON in UTF-8 (${String(cause).slice(0, 120)})`);
  }
}

const badRow = (message: string): InputError => new InputError([{ path: "dataset", message }]);

function readAgain(path: string, start: number, length: number, opened: Stats): Buffer {
  const file = openSync(path, "r");
  try {
    const now = fstatSync(file);
    const bytes = Buffer.alloc(length);
    const same = now.mtimeMs === opened.mtimeMs && now.size === opened.size && now.ino === opened.ino;
    if (same && readSync(file, bytes, 0, length, start) === length) return bytes;
  } finally {
    closeSync(file);
  }
  throw new BoundaryError("infrastructure", "dataset_changed", `${basename(path)} changed after it was opened`);
}
