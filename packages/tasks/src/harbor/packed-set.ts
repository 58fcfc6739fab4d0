/**
 * A packed set: a Parquet file with a task folder in each row (`path`, and `task_binary`, a tar of the folder). Invariants: a tar is
 * checked whole before anything of it is written; equal tars are unpacked once, into a folder named by what they hold; some rows of a
 * row group are read at a time.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { z } from "zod";
import { readTar, type TarEntry, TarRefusal } from "./checked-tar.ts";

const Row = z.object({ path: z.string().min(1).max(1000), task_binary: z.instanceof(Uint8Array) });

const limits = { maxBytes: 512 * 1024 * 1024, maxEntries: 20_000 };
const maxRows = 100_000;
/** Of rows that are held at once, about. */
const readBytes = 256 * 1024 * 1024;

/**
 * @param cache folder of this server's own, where tasks are unpacked
 * @returns the tasks' folders in the order of the rows
 * @throws InputError at `dataset` that names the row
 */
export async function unpackSet(path: string, cache: string): Promise<string[]> {
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file).catch((cause: unknown) => {
    throw refusal(`is no readable Parquet file: ${messageOf(cause)}`);
  });
  if (metadata.num_rows > maxRows) throw refusal(`holds more than ${maxRows} rows`);
  const columns = ["path", "task_binary"];
  const has = new Set(metadata.schema.map(({ name }) => name));
  const missing = columns.filter((column) => !has.has(column));
  if (missing.length > 0) throw refusal(`has no column ${missing.join(" and no ")}`);
  const folders: string[] = [];
  let rowStart = 0;
  for (const group of metadata.row_groups) {
    const rowEnd = rowStart + Number(group.num_rows);
    // Every read goes through the group from its beginning: one for each row would take the square of its time.
    const step = Math.max(1, Math.floor(((rowEnd - rowStart) * readBytes) / Number(group.total_byte_size)));
    for (let row = rowStart; row < rowEnd; row += step) {
      const read = {
        file,
        metadata,
        compressors,
        columns,
        rowStart: row,
        rowEnd: Math.min(row + step, rowEnd),
        utf8: false,
      };
      const rows = await parquetReadObjects(read).catch((cause: unknown) => {
        throw refusal(`row ${row + 1}: can't be read: ${messageOf(cause)}`);
      });
      for (const [at, each] of rows.entries()) folders.push(await unpackRow(each, row + at + 1, cache));
    }
    rowStart = rowEnd;
  }
  return folders;
}

const refusal = (message: string): InputError => new InputError([{ path: "dataset", message }]);
const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

async function unpackRow(raw: unknown, row: number, cache: string): Promise<string> {
  const parsed = Row.safeParse(raw);
  if (!parsed.success) {
    throw refusal(
      `row ${row}: ${parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ")}`,
    );
  }
  const { path, task_binary } = parsed.data;
  const name = nameOf(path);
  if (name === null) throw refusal(`row ${row}: path: is no name of a folder`);
  const digest = createHash("sha256").update(task_binary).digest("hex").slice(0, 32);
  const folder = join(cache, digest, name);
  if ((await stat(folder).catch(() => null))?.isDirectory()) return folder;
  try {
    const entries = await readTar(task_binary, limits, (entry, why) => {
      throw new TarRefusal(`${entry}: ${why}`);
    });
    await unpack(withoutWrapper(entries), folder);
  } catch (cause) {
    if (cause instanceof TarRefusal) throw refusal(`row ${row}: task_binary: ${cause.message}`);
    throw cause;
  }
  return folder;
}

/** The last part of the path. */
function nameOf(path: string): string | null {
  const last =
    path
      .split("/")
      .filter((part) => part !== "")
      .at(-1) ?? "";
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/u.test(last) ? last : null;
}

/** A tar of the folder itself holds task.toml one level down. */
function withoutWrapper(entries: readonly TarEntry[]): TarEntry[] {
  if (entries.some(({ name }) => name === "task.toml")) return [...entries];
  const tops = new Set(entries.map(({ name }) => name.split("/")[0] ?? ""));
  const [top] = tops;
  if (tops.size !== 1 || top === undefined) return [...entries];
  const inner = entries.filter(({ name }) => name !== top);
  return inner.map((entry) => ({ ...entry, name: entry.name.slice(top.length + 1) }));
}

/** Written beside and renamed: a folder that is there is whole. */
async function unpack(entries: readonly TarEntry[], folder: string): Promise<void> {
  const beside = join(dirname(dirname(folder)), `unpacking-${randomBytes(8).toString("hex")}`);
  try {
    await mkdir(beside, { recursive: true, mode: 0o700 });
    for (const { name, kind, mode, content, target } of entries) {
      const path = join(beside, name);
      await mkdir(kind === "folder" ? path : dirname(path), { recursive: true });
      if (kind === "file") await writeFile(path, content, { mode: (mode & 0o111) === 0 ? 0o644 : 0o755, flag: "wx" });
      else if (kind === "link") await symlink(target, path);
    }
    await mkdir(dirname(folder), { recursive: true, mode: 0o700 });
    await rename(beside, folder);
  } catch (cause) {
    await rm(beside, { recursive: true, force: true });
    // Another process was faster: what it wrote is the same.
    if ((await stat(folder).catch(() => null))?.isDirectory()) return;
    throw cause;
  }
}
