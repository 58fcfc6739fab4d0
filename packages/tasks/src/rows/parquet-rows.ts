/**
 * Rows of a Parquet file. Tasks ask for rows without waiting and Parquet can only be read a row group at a time, so opening
 * writes every row once, as a line of JSON, to a file in the system's folder for temporary files that has no name any more: it is
 * gone with the process. Invariants: one row group is in memory at a time, and a larger one than `maxGroupBytes` is refused;
 * values are as the file has them (64-bit numbers past 2^53 become text, bytes that are no text base64, times ISO 8601).
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import { asyncBufferFromFile, type FileMetaData, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { badRow, maxRowBytes } from "./bad-row.ts";
import type { RowIndex, RowPlaces } from "./row-index.ts";
import { refuseChanged } from "./unchanged-file.ts";

/** Uncompressed bytes of the columns that are read of one row group. */
const maxGroupBytes = 1024 * 1024 * 1024;
/** Of all rows, as lines of JSON. */
const maxSpoolBytes = 16 * 1024 * 1024 * 1024;

type Check = (bytes: Buffer, where: string) => void;

/** @throws InputError at `dataset` for a file that can't be read or a row that does not fit */
export async function spoolParquet(
  path: string,
  columns: readonly string[] | null,
  index: RowIndex,
  check: Check,
): Promise<RowPlaces> {
  const name = basename(path);
  const opened = await stat(path);
  const spool = new Spool();
  let number = 0;
  for await (const rows of rowGroups(path, columns)) {
    for (const row of rows) {
      const bytes = Buffer.from(`${JSON.stringify(row, plainValue)}\n`);
      const where = `${name} row ${number++}`;
      if (bytes.length > maxRowBytes) throw badRow(`${where}: longer than ${maxRowBytes} bytes`);
      check(bytes, where);
      index.add(spool.size, bytes);
      spool.write(bytes);
    }
  }
  refuseChanged(path, opened);
  return index.places(spool.size, (start, length) => {
    refuseChanged(path, opened);
    return spool.read(start, length);
  });
}

async function* rowGroups(path: string, columns: readonly string[] | null): AsyncGenerator<Record<string, unknown>[]> {
  const name = basename(path);
  const unreadable = (cause: unknown) =>
    badRow(`${name}: not a readable Parquet file (${String(cause).slice(0, 160)})`);
  try {
    const file = await asyncBufferFromFile(path);
    const metadata = await parquetMetadataAsync(file);
    const wanted = columns === null ? topColumns(metadata) : topColumns(metadata).filter((it) => columns.includes(it));
    let rowStart = 0;
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows);
      const bytes = groupBytes(group, wanted);
      if (bytes > maxGroupBytes) throw new RangeError(`a row group of ${bytes} bytes; at most ${maxGroupBytes}`);
      yield await parquetReadObjects({ file, metadata, compressors, rowStart, rowEnd, columns: wanted });
      rowStart = rowEnd;
    }
  } catch (cause) {
    throw cause instanceof InputError || cause instanceof BoundaryError ? cause : unreadable(cause);
  }
}

/** The first element of a schema is its root; a top-level column is a child of it, whatever lies below. */
function topColumns({ schema }: FileMetaData): string[] {
  const names: string[] = [];
  let at = 1;
  const skip = (): void => {
    let children = schema[at++]?.num_children ?? 0;
    while (children-- > 0) skip();
  };
  while (at < schema.length) {
    names.push(schema[at]?.name ?? "");
    skip();
  }
  return names;
}

function groupBytes(group: FileMetaData["row_groups"][number], columns: readonly string[]): number {
  return group.columns
    .filter(({ meta_data }) => columns.includes(meta_data?.path_in_schema[0] ?? ""))
    .reduce((sum, { meta_data }) => sum + Number(meta_data?.total_uncompressed_size ?? 0), 0);
}

function plainValue(this: unknown, _key: string, value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
}

const spools = new FinalizationRegistry<number>((file) => closeSync(file));

/** A file without a name; its space is given back when nothing refers to it any more. */
class Spool {
  readonly #file: number;
  size = 0;

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), "rolldeck-rows-"));
    try {
      this.#file = openSync(join(folder, "rows"), "wx+", 0o600);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    spools.register(this, this.#file);
  }

  write(bytes: Buffer): void {
    if (this.size + bytes.length > maxSpoolBytes) throw badRow(`the rows are more than ${maxSpoolBytes} bytes`);
    let done = 0;
    while (done < bytes.length) done += writeSync(this.#file, bytes, done, bytes.length - done, this.size + done);
    this.size += bytes.length;
  }

  read(start: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    let done = 0;
    while (done < length) {
      const got = readSync(this.#file, bytes, done, length - done, start + done);
      if (got === 0)
        throw new BoundaryError("infrastructure", "dataset_lost", "the written-out rows are shorter than they were");
      done += got;
    }
    return bytes;
  }
}
