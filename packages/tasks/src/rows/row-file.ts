/**
 * Rows of a JSONL or Parquet file: opening reads the file once, checks every row and keeps only where each begins, so that a
 * data set larger than memory can be trained on. JSONL is read where it lies; what Parquet holds is written out once, as lines,
 * to a file without a name (./parquet-rows).
 *
 * Invariants: rows are verbatim (strings are not trimmed, normalised or filled in; fields the schema does not name are left
 * alone); a file that changed after it was opened gives no rows any more, never other ones.
 */
import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { basename } from "node:path";
import type { z } from "zod";
import { badRow, maxRowBytes } from "./bad-row.ts";
import { spoolParquet } from "./parquet-rows.ts";
import { RowIndex, type RowPlaces } from "./row-index.ts";
import { readIfUnchanged } from "./unchanged-file.ts";

export interface RowFile<R> {
  readonly count: number;
  /** @throws RangeError past the end, BoundaryError("infrastructure") when the file is not the one that was opened */
  row(index: number): R;
  /** Eight hexadecimal digits of what the row says, as it was when the file was opened. @throws RangeError past the end */
  mark(index: number): string;
  /** What `nameOf` said of the row; null without one. @throws RangeError past the end */
  label(index: number): string | null;
}

export interface RowFileOptions<R> {
  /** A short name of a row, kept in memory for all of them. */
  readonly nameOf?: (row: R) => string;
  /** Top-level columns that are read of a Parquet file; absent = all. Of JSONL everything is read. */
  readonly columns?: readonly string[];
}

const newline = 0x0a;

/** @throws InputError at `dataset` that names the first bad line or row and what is wrong with it */
export async function openRowFile<S extends z.ZodType>(
  path: string,
  schema: S,
  options: RowFileOptions<z.output<S>> = {},
): Promise<RowFile<z.output<S>>> {
  const name = basename(path);
  const index = new RowIndex();
  const check = (bytes: Buffer, where: string): void => {
    const row = parseRow(bytes, schema, where);
    if (options.nameOf) index.name(options.nameOf(row));
  };
  const parquet = await isParquet(path);
  const places = parquet
    ? await spoolParquet(path, options.columns ?? null, index, check)
    : await indexLines(path, index, check);
  return rowsAt(name, places, (bytes, at) => parseRow(bytes, schema, `${name} row ${at}`));
}

function rowsAt<R>(name: string, places: RowPlaces, parse: (bytes: Buffer, index: number) => R): RowFile<R> {
  const { count } = places;
  const checked = (index: number): number => {
    if (Number.isSafeInteger(index) && index >= 0 && index < count) return index;
    throw new RangeError(`${name} has ${count} rows, not ${index}`);
  };
  return {
    count,
    row: (index) => parse(places.read(checked(index)), index),
    mark: (index) => places.mark(checked(index)).toString(16).padStart(8, "0"),
    label: (index) => places.label(checked(index)),
  };
}

/** By what the file says, not by its name. */
async function isParquet(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return bytesRead === 4 && buffer.toString("latin1") === "PAR1";
  } finally {
    await file.close();
  }
}

async function indexLines(
  path: string,
  index: RowIndex,
  check: (bytes: Buffer, where: string) => void,
): Promise<RowPlaces> {
  const name = basename(path);
  const opened = await stat(path);
  for await (const line of linesOf(path, name)) {
    if (isBlank(line.bytes)) continue;
    check(line.bytes, `${name} line ${line.number}`);
    index.add(line.start, line.bytes);
  }
  // What follows a row up to the next is white space.
  return index.places(opened.size, (start, length) => readIfUnchanged(path, opened, start, length));
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
