/**
 * Files of a task's folder on the operator's disk: listed, marked by what they say, packed for a sandbox. Invariants: no link leads
 * out of the task's folder; what is packed is what was there when the data set was opened, or nothing is.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readFile, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import { isInside } from "../inside-folder.ts";
import { type TarEntry, writeTar } from "./checked-tar.ts";

const maxFiles = 20_000;
/** Of the tests, solution or workdir of one task: they are packed in memory. */
const maxPackedBytes = 256 * 1024 * 1024;

interface Found {
  /** Relative to the folder. */
  readonly name: string;
  readonly kind: TarEntry["kind"];
  readonly mode: number;
  readonly bytes: number;
  readonly mtimeMs: number;
  readonly target: string;
}

/** Everything below a folder, in order of names. @throws InputError at `dataset` for a link that leads out, or too many files */
async function listFiles(folder: string, home: string): Promise<Found[]> {
  const found: Found[] = [];
  const visit = async (prefix: string): Promise<void> => {
    const names = (await readdir(join(folder, prefix))).sort();
    for (const each of names) {
      const name = prefix === "" ? each : `${prefix}/${each}`;
      const stats = await lstat(join(folder, name));
      if (found.length >= maxFiles) throw refusal(`${folder} holds more than ${maxFiles} files`);
      const shape = { name, mode: stats.mode & 0o777, bytes: stats.size, mtimeMs: stats.mtimeMs, target: "" };
      if (stats.isDirectory()) {
        found.push({ ...shape, kind: "folder" });
        await visit(name);
      } else if (stats.isFile()) found.push({ ...shape, kind: "file" });
      else if (stats.isSymbolicLink()) {
        const reached = await realpath(join(folder, name)).catch(() => null);
        if (reached !== null && !isInside(reached, home))
          throw refusal(`${join(folder, name)} leads out of the task's folder`);
        found.push({ ...shape, kind: "link", target: await readlink(join(folder, name)) });
      } else throw refusal(`${join(folder, name)} is neither file, folder nor link`);
    }
  };
  await visit("");
  return found;
}

const refusal = (message: string): InputError => new InputError([{ path: "dataset", message }]);

/** Bytes of a file's begin and end that make its mark, of files larger than both. */
const sampledBytes = 4 * 1024 * 1024;

/**
 * What a folder says: names, kinds, whether files can be run, contents. Times and owners don't count.
 * @returns 64 hexadecimal digits; null where there is no such folder
 */
export async function folderMark(folder: string, home: string): Promise<string | null> {
  const stats = await lstat(folder).catch(() => null);
  if (stats === null || !stats.isDirectory()) return null;
  const hash = createHash("sha256");
  for (const { name, kind, mode, bytes, target } of await listFiles(folder, home)) {
    hash.update(
      JSON.stringify([name, kind, kind === "file" && (mode & 0o100) !== 0, kind === "file" ? bytes : 0, target]),
    );
    if (kind !== "file") continue;
    for (const range of rangesOf(bytes)) {
      for await (const chunk of createReadStream(join(folder, name), range)) hash.update(chunk);
    }
  }
  return hash.digest("hex");
}

const rangesOf = (bytes: number): readonly { readonly start: number; readonly end?: number }[] =>
  bytes <= 2 * sampledBytes ? [{ start: 0 }] : [{ start: 0, end: sampledBytes - 1 }, { start: bytes - sampledBytes }];

/**
 * A tar of the folder's content; null where there is no such folder.
 * @param mark of the folder when the data set was opened
 * @throws BoundaryError("infrastructure", "dataset_changed") when it says something else now
 */
export async function packFolder(folder: string, home: string, mark: string | null): Promise<Uint8Array | null> {
  if (mark === null) return null;
  const now = await folderMark(folder, home);
  if (now !== mark) {
    throw new BoundaryError("infrastructure", "dataset_changed", `${folder} changed after the data set was opened`);
  }
  const entries: TarEntry[] = [];
  let left = maxPackedBytes;
  for (const found of await listFiles(folder, home)) {
    left -= found.kind === "file" ? found.bytes : 0;
    if (left < 0) throw refusal(`${folder} is larger than ${maxPackedBytes / 1_048_576} MiB`);
    const content = found.kind === "file" ? await readFile(join(folder, found.name)) : new Uint8Array();
    // Anyone in the sandbox who grades may read them, whatever umask the set was unpacked under.
    const runs = found.kind === "folder" || (found.mode & 0o100) !== 0 || found.name.endsWith(".sh");
    const mode = runs ? 0o755 : 0o644;
    entries.push({ name: found.name, kind: found.kind, mode, mtimeMs: found.mtimeMs, content, target: found.target });
  }
  return writeTar(entries);
}
