/**
 * What a sandbox says of its tree: every source file with a stamp that changes when it does, and, where asked, the hash of its
 * content. Parsed where it is used, in the thread: a large tree's listing is long.
 */
import { languageOf } from "./languages/registry.ts";

export interface ListedFile {
  /** Relative to the root. */
  readonly path: string;
  readonly bytes: number;
  /** Size and times of content and inode. */
  readonly stamp: string;
}

/** Beyond them a tree is searched in part, and the answer says so. */
export const maxFiles = 20_000;
export const maxFileBytes = 1024 * 1024;
export const maxTreeBytes = 200 * 1024 * 1024;

export interface Listing {
  readonly files: ReadonlyMap<string, ListedFile>;
  /** Source files that the limits keep out. */
  readonly leftOut: number;
}

/** Records `size mtime ctime ./path`, ended by a zero, or by a line end where the sandbox's find has no better. */
export function parseListing(listing: Uint8Array): Listing {
  const text = Buffer.from(listing.buffer, listing.byteOffset, listing.byteLength).toString("utf8");
  const files = new Map<string, ListedFile>();
  let bytes = 0;
  let leftOut = 0;
  for (const record of text.split(text.includes("\0") ? "\0" : "\n")) {
    const parts = /^((\d+) [\d.]+ [\d.]+) (?:\.\/)?(.+)$/s.exec(record);
    if (parts === null) continue;
    const [, stamp = "", size = "", path = ""] = parts;
    if (languageOf(path) === undefined) continue;
    const own = Number(size);
    if (own > maxFileBytes || files.size >= maxFiles || bytes + own > maxTreeBytes) {
      leftOut += 1;
      continue;
    }
    bytes += own;
    files.set(path, { path, bytes: own, stamp });
  }
  return { files, leftOut };
}

/** Lines of sha1sum: path to hash. Names that it writes in another form are left out. */
export function parseHashes(hashes: Uint8Array): Map<string, string> {
  const text = Buffer.from(hashes.buffer, hashes.byteOffset, hashes.byteLength).toString("utf8");
  const found = new Map<string, string>();
  for (const line of text.split("\n")) {
    const parts = /^([0-9a-f]{40}) [ *](?:\.\/)?(.+)$/.exec(line);
    if (parts?.[1] !== undefined && parts[2] !== undefined) found.set(parts[2], parts[1]);
  }
  return found;
}
