/**
 * Tar archives that cross the border of a sandbox, in either direction. Invariants of one that passes: plain files, folders and
 * symbolic links only; no name and no link leads out of the folder it is unpacked in, whatever was there before; no set-id bits,
 * no owners. Nothing is held but one chunk and the names of folders and links.
 */
import { SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { extract, type Header, type Pack, pack } from "tar-stream";
import { roomIn } from "./waiting.ts";

/** tar-stream's own streams do not say what they hold. */
async function* bytesOf(source: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    if (chunk instanceof Uint8Array) yield chunk;
  }
}

const maxEntries = 500_000;
const maxNameLength = 4096;

/** What is remembered of the entries before this one. */
class ArchiveRules {
  readonly #links = new Set<string>();
  readonly folders = new Set<string>();
  #entries = 0;

  /** Why an entry is refused, or its clean name ("" = the folder itself). */
  judge(header: Header): { readonly name: string } | { readonly trouble: string } {
    this.#entries += 1;
    if (this.#entries > maxEntries) return { trouble: `holds more than ${maxEntries} entries` };
    const shown = JSON.stringify(header.name.slice(0, 200));
    if (header.type !== "file" && header.type !== "contiguous-file" && header.type !== "directory") {
      if (header.type !== "symlink") return { trouble: `${shown} is a ${header.type ?? "thing of an unknown kind"}` };
    }
    const name = insideName(header.name);
    if (name === null) return { trouble: `${shown} leads out of it` };
    for (const parent of parentsOf(name)) {
      if (this.#links.has(parent)) return { trouble: `${shown} lies under a link of the archive` };
    }
    if (header.type === "symlink") {
      if (name === "" || !linkStaysInside(name, header.linkname ?? "")) {
        return { trouble: `the link ${shown} leads out of it` };
      }
      this.#links.add(name);
    }
    return { name };
  }
}

/** Slashes and dots tidied; null for a name that is absolute, climbs, or can't be one. */
function insideName(name: string): string | null {
  if (name.startsWith("/") || name.includes("\0") || name.length > maxNameLength) return null;
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  return parts.includes("..") ? null : parts.join("/");
}

/** Climbing is allowed at the link's beginning only: after another name it would start from wherever that one points. */
function linkStaysInside(name: string, target: string): boolean {
  if (target === "" || target.startsWith("/") || target.includes("\0") || target.length > maxNameLength) return false;
  const parts = target.split("/").filter((part) => part !== "" && part !== ".");
  const climbs = parts.findIndex((part) => part !== "..");
  const leading = climbs < 0 ? parts.length : climbs;
  return !parts.slice(leading).includes("..") && leading <= name.split("/").length - 1;
}

function parentsOf(name: string): string[] {
  const parts = name.split("/");
  return parts.slice(0, -1).map((_part, at) => parts.slice(0, at + 1).join("/"));
}

/**
 * The archive written anew from what passed, with an entry for every folder on the way: unpacking then makes real folders where
 * links had been laid. What came before a bad entry of a stream has been handed on; bytes are checked whole first.
 * @throws SandboxFileError("bad_archive") that names the entry; `path` is where it was to be unpacked
 */
export async function* checkedArchive(
  tar: Uint8Array | AsyncIterable<Uint8Array>,
  path: string,
): AsyncGenerator<Uint8Array> {
  if (tar instanceof Uint8Array) {
    for await (const _ of rewritten(once(tar), path));
    yield* rewritten(once(tar), path);
  } else yield* rewritten(tar, path);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function* rewritten(tar: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  const output = pack();
  const writing = rewrite(tar, output, path).then(
    () => output.finalize(),
    (error: unknown) => output.destroy(error instanceof Error ? error : new Error(String(error))),
  );
  try {
    yield* bytesOf(output);
  } finally {
    output.destroy();
    await writing;
  }
}

async function rewrite(tar: AsyncIterable<Uint8Array>, output: Pack, path: string): Promise<void> {
  const rules = new ArchiveRules();
  await eachEntry(tar, path, async (header, body) => {
    const verdict = rules.judge(header);
    if ("trouble" in verdict) throw badArchive(path, verdict.trouble);
    const { name } = verdict;
    for (const folder of parentsOf(name)) {
      if (rules.folders.has(folder)) continue;
      rules.folders.add(folder);
      output.entry({ name: `${folder}/`, type: "directory", mode: 0o755 });
    }
    if (header.type === "directory") {
      if (name !== "" && !rules.folders.has(name)) output.entry({ ...plain(header, `${name}/`), type: "directory" });
      rules.folders.add(name);
    } else if (header.type === "symlink") {
      output.entry({ ...plain(header, name), type: "symlink", linkname: header.linkname });
    } else if (name === "") throw badArchive(path, "holds a file without a name");
    else await copyFile(output, { ...plain(header, name), type: "file", size: header.size ?? 0 }, body);
  });
}

const plain = (header: Header, name: string): Partial<Header> & { name: string } => ({
  name,
  mode: (header.mode ?? 0o644) & 0o777,
  mtime: header.mtime,
  uid: 0,
  gid: 0,
});

async function copyFile(
  output: Pack,
  header: Partial<Header> & { name: string },
  body: AsyncIterable<Uint8Array>,
): Promise<void> {
  const written = new Promise<void>((resolve, reject) => {
    const sink = output.entry(header, (error) => (error ? reject(error) : resolve()));
    sink.on("error", reject);
    (async () => {
      for await (const chunk of body) {
        if (!sink.write(chunk)) await roomIn(sink);
      }
      sink.end(null);
    })().catch(reject);
  });
  await written;
}

/** Reads an archive entry by entry. @throws SandboxFileError("bad_archive") where it is none, or is cut */
async function eachEntry(
  tar: AsyncIterable<Uint8Array>,
  path: string,
  take: (header: Header, body: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<void> {
  const reader = extract();
  const feeding = feed(tar, reader).catch((error: unknown) => {
    reader.destroy(error instanceof Error ? error : new Error(String(error)));
  });
  try {
    for await (const entry of reader) {
      await take(entry.header, bytesOf(entry));
      entry.resume();
    }
  } catch (error) {
    if (error instanceof SandboxFileError || !isFormatError(error)) throw error;
    throw badArchive(path, `can't be read: ${error.message}`, error);
  } finally {
    reader.destroy();
    await feeding;
  }
}

const isFormatError = (error: unknown): error is Error =>
  error instanceof Error && /tar header|unexpected end of data|invalid/i.test(error.message);

async function feed(tar: AsyncIterable<Uint8Array>, reader: ReturnType<typeof extract>): Promise<void> {
  for await (const chunk of tar) {
    if (reader.destroyed) return;
    if (!reader.write(chunk)) await roomIn(reader);
  }
  reader.end(null);
}

/** Checks an archive that a sandbox gave, of the file or folder `top`. @throws SandboxFileError("bad_archive") */
export async function checkGivenArchive(tar: Uint8Array, top: string, path: string): Promise<void> {
  const rules = new ArchiveRules();
  await eachEntry(once(tar), path, async (header, body) => {
    const verdict = rules.judge(header);
    if ("trouble" in verdict) throw badArchive(path, verdict.trouble);
    if (top !== "" && verdict.name !== top && !verdict.name.startsWith(`${top}/`)) {
      throw badArchive(path, `${JSON.stringify(verdict.name.slice(0, 200))} is no part of ${JSON.stringify(top)}`);
    }
    for await (const _ of body);
  });
}

const badArchive = (path: string, trouble: string, cause?: unknown): SandboxFileError =>
  new SandboxFileError("bad_archive", path, `the archive ${trouble}`, { cause });
