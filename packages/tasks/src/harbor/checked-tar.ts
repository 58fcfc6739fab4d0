/**
 * Tars that others made, read into lists and written again. Invariants: a name that leaves the folder, a device, a pipe or a link
 * that leads out never comes through; sizes and counts are bounded before anything is kept.
 */
import { posix } from "node:path";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { extract, pack } from "tar-stream";

export interface TarEntry {
  /** Relative, without `.` and `..`. */
  readonly name: string;
  readonly kind: "file" | "folder" | "link";
  /** Permission bits. */
  readonly mode: number;
  readonly mtimeMs: number;
  readonly content: Uint8Array;
  /** Of a link, as it was written. */
  readonly target: string;
}
export interface TarLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
}

/** Of the folders above a file: every one is looked up. */
const maxDepth = 200;

/** A tar that can't be taken as it is. */
export class TarRefusal extends Error {
  override readonly name = "TarRefusal";
}

/**
 * Plain or gzipped.
 * @param onOdd what to do with an entry that can't come through: throw, or return and it is left out
 * @throws TarRefusal
 */
export async function readTar(
  bytes: Uint8Array,
  limits: TarLimits,
  onOdd: (name: string, why: string) => void,
): Promise<TarEntry[]> {
  const reader = extract();
  const source = Readable.from([bytes]);
  const gzipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const unzipped = gzipped ? source.pipe(createGunzip()) : source;
  source.on("error", (error) => reader.destroy(error));
  unzipped.on("error", (error) => reader.destroy(error));
  unzipped.pipe(reader);
  const entries = new Map<string, TarEntry>();
  let left = limits.maxBytes;
  try {
    for await (const entry of reader) {
      const { header } = entry;
      if (entries.size >= limits.maxEntries) throw new TarRefusal(`holds more than ${limits.maxEntries} files`);
      const chunks: Uint8Array[] = [];
      for await (const chunk of entry) {
        if (!(chunk instanceof Uint8Array)) continue;
        left -= chunk.length;
        if (left < 0) throw new TarRefusal(`holds more than ${limits.maxBytes} bytes`);
        chunks.push(chunk);
      }
      const why = keep(entries, header, Buffer.concat(chunks));
      if (why !== null) onOdd(header.name, why);
    }
  } catch (cause) {
    if (cause instanceof TarRefusal) throw cause;
    throw new TarRefusal(`is no readable tar: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  } finally {
    source.destroy();
    unzipped.destroy();
    reader.destroy();
  }
  return [...entries.values()];
}

interface Header {
  readonly name: string;
  readonly type?: string | null | undefined;
  readonly mode?: number | undefined;
  readonly mtime?: Date | undefined;
  readonly linkname?: string | null | undefined;
}

/** Adds an entry. @returns why it can't come through; null when it did */
function keep(entries: Map<string, TarEntry>, header: Header, content: Uint8Array): string | null {
  const name = safeName(header.name);
  if (name === null) return "its name leads out of the folder";
  if (name === "") return null;
  if (name.split("/").length > maxDepth) return "it lies too deep";
  // A file below a link would be written where the link leads.
  const above = parents(name).find((folder) => (entries.get(folder)?.kind ?? "folder") !== "folder");
  if (above !== undefined) return `${above} is no folder`;
  const shape = { name, mode: (header.mode ?? 0o644) & 0o777, mtimeMs: header.mtime?.getTime() ?? 0, target: "" };
  const linked = header.linkname ?? "";
  switch (header.type ?? "file") {
    case "file":
    case "contiguous-file":
      entries.set(name, { ...shape, kind: "file", content });
      return null;
    case "directory":
      if (!entries.has(name)) entries.set(name, { ...shape, kind: "folder", content: new Uint8Array() });
      return null;
    case "symlink":
      if (!staysInside(name, linked)) return "it is a link that leads out of the folder";
      entries.set(name, { ...shape, kind: "link", content: new Uint8Array(), target: linked });
      return null;
    case "link": {
      const other = entries.get(safeName(linked) ?? "");
      if (other?.kind !== "file") return "it is a hard link to what is not there";
      entries.set(name, { ...other, name });
      return null;
    }
    default:
      return `it is a ${header.type}`;
  }
}

/** Null for a name that leads out; "" for the folder itself. */
function safeName(name: string): string | null {
  if (name.startsWith("/") || name.includes("\0")) return null;
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  return parts.includes("..") ? null : parts.join("/");
}

const parents = (name: string): string[] => {
  const parts = name.split("/").slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join("/"));
};

function staysInside(name: string, target: string): boolean {
  if (target === "" || target.startsWith("/") || target.includes("\0")) return false;
  const reached = posix.normalize(posix.join(posix.dirname(name), target));
  return reached !== ".." && !reached.startsWith("../");
}

/** Bytes of a plain tar of the entries, in their order; owned by root. */
export async function writeTar(entries: readonly TarEntry[]): Promise<Uint8Array> {
  const writer = pack();
  const chunks: Uint8Array[] = [];
  const collected = (async () => {
    for await (const chunk of writer) if (chunk instanceof Uint8Array) chunks.push(chunk);
  })();
  for (const { name, kind, mode, mtimeMs, content, target } of entries) {
    const shape = { name, mode, mtime: new Date(mtimeMs), uid: 0, gid: 0 };
    if (kind === "file") writer.entry({ ...shape, type: "file", size: content.length }, Buffer.from(content));
    else if (kind === "folder") writer.entry({ ...shape, type: "directory" });
    else writer.entry({ ...shape, type: "symlink", linkname: target });
  }
  writer.finalize();
  await collected;
  return Buffer.concat(chunks);
}
