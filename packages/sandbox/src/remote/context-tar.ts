/**
 * A build context as a tar: the same bytes for the same files, so that its hash names it. `.git` at its top is left out;
 * `.dockerignore` is for the host that builds. Unpacking takes nothing that would land, or point, outside its folder.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { lstat, mkdir, readdir, readlink, rm, symlink } from "node:fs/promises";
import path from "node:path";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { extract, type Header, pack } from "tar-stream";

const maxEntries = 200_000;

/** Hash and length of the context's tar, which is read once for it and not kept. @throws SandboxFileError */
export async function measureContext(folder: string, maxBytes: number): Promise<{ hash: string; bytes: number }> {
  const sum = createHash("sha256");
  let bytes = 0;
  for await (const chunk of contextTar(folder, maxBytes)) {
    sum.update(chunk);
    bytes += chunk.length;
  }
  return { hash: sum.digest("hex"), bytes };
}

/** The context's tar. @throws SandboxFileError for more than `maxBytes`, or what is neither file, folder nor link */
export async function* contextTar(folder: string, maxBytes: number): AsyncGenerator<Uint8Array, void> {
  const tar = pack();
  const filled = fill(tar, folder).then(
    () => tar.finalize(),
    (error: Error) => tar.destroy(error),
  );
  let bytes = 0;
  for await (const chunk of tar) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError("a tar is bytes");
    bytes += chunk.length;
    if (bytes > maxBytes) {
      tar.destroy();
      throw new SandboxFileError("too_large", folder, `the build context ${folder} has more than ${maxBytes} bytes`);
    }
    yield chunk;
  }
  await filled;
}

async function fill(tar: ReturnType<typeof pack>, folder: string): Promise<void> {
  for (const name of await namesUnder(folder)) {
    const file = path.join(folder, name);
    const stat = await lstat(file);
    const common = { name, mode: stat.mode & 0o7777, mtime: new Date(0), uid: 0, gid: 0 };
    if (stat.isDirectory()) tar.entry({ ...common, type: "directory" });
    else if (stat.isSymbolicLink()) tar.entry({ ...common, type: "symlink", linkname: await readlink(file) });
    else if (stat.isFile()) await pipeline(createReadStream(file), tar.entry({ ...common, size: stat.size }));
    else throw new SandboxFileError("bad_archive", file, `${file} is neither file, folder nor link`);
  }
}

/** Relative names, folders before what is in them, in an order of their own. */
async function namesUnder(folder: string): Promise<string[]> {
  const names: string[] = [];
  const walk = async (prefix: string): Promise<void> => {
    const entries = await readdir(path.join(folder, prefix), { withFileTypes: true });
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      if (prefix === "" && entry.name === ".git") continue;
      const name = path.join(prefix, entry.name);
      names.push(name);
      if (names.length > maxEntries) {
        throw new SandboxFileError(
          "too_large",
          folder,
          `the build context ${folder} has more than ${maxEntries} entries`,
        );
      }
      if (entry.isDirectory()) await walk(name);
    }
  };
  await walk("");
  return names;
}

/** Unpacks a context's tar into an empty folder. @throws SandboxFileError("bad_archive") for one that leads out of it */
export async function unpackContext(tar: Readable, folder: string, maxBytes: number): Promise<void> {
  const reader = extract();
  const links = new Set<string>();
  let entries = 0;
  let bytes = 0;
  const work = (async () => {
    for await (const entry of reader) {
      const name = insideName(entry.header, links);
      entries += 1;
      bytes += entry.header.size ?? 0;
      if (entries > maxEntries || bytes > maxBytes)
        throw new SandboxFileError("too_large", name, "the context is too large");
      const target = path.join(folder, name);
      const mode = (entry.header.mode ?? 0o644) & 0o777;
      await mkdir(path.dirname(target), { recursive: true });
      if (entry.header.type === "directory") await mkdir(target, { recursive: true, mode: mode | 0o700 });
      else if (entry.header.type === "symlink") {
        await symlink(insideLink(name, entry.header.linkname ?? ""), target);
        links.add(name);
      } else await pipeline(entry, createWriteStream(target, { flags: "wx", mode: mode | 0o600 }));
      entry.resume();
    }
  })();
  try {
    await Promise.all([pipeline(tar, reader), work]);
  } catch (error) {
    if (error instanceof SandboxFileError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new SandboxFileError("bad_archive", "", `the build context can't be unpacked: ${message}`, { cause: error });
  }
}

function insideName(header: Header, links: ReadonlySet<string>): string {
  const bad = (why: string): SandboxFileError =>
    new SandboxFileError("bad_archive", header.name, `the build context holds ${JSON.stringify(header.name)}, ${why}`);
  const type = header.type ?? "file";
  if (type !== "file" && type !== "directory" && type !== "symlink") throw bad(`a ${type}`);
  const name = header.name.replace(/\/+$/, "");
  const parts = name.split("/");
  if (name === "" || name.startsWith("/") || name.includes("\0")) throw bad("which is no name inside it");
  if (parts.some((part) => ["", ".", ".."].includes(part))) throw bad("which is no plain name");
  for (let depth = 1; depth < parts.length; depth += 1) {
    if (links.has(parts.slice(0, depth).join("/"))) throw bad("which goes through a link");
  }
  if (links.has(name)) throw bad("twice");
  return name;
}

function insideLink(name: string, target: string): string {
  const lands = path.normalize(path.join(path.dirname(name), target));
  // Up again after a name could be up from where another link leads, which is not what it looks like.
  const parts = target.split("/").filter((part) => part !== "" && part !== ".");
  const firstName = parts.findIndex((part) => part !== "..");
  const turnsBack = firstName >= 0 && parts.includes("..", firstName);
  if (target === "" || path.isAbsolute(target) || turnsBack || lands === ".." || lands.startsWith("../")) {
    throw new SandboxFileError("bad_archive", name, `the build context's link ${name} leads out of it`);
  }
  return target;
}

/** Begins the names of contexts that are not whole yet. */
export const partPrefix = "part-";

/** Of a process before this one that was killed while they came. */
export async function removeParts(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    if (name.startsWith(partPrefix)) await rm(path.join(folder, name), { recursive: true, force: true });
  }
}

/** Passes bytes on and adds them to a sum. */
export function summing(sum: Hash): Transform {
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      sum.update(chunk);
      done(null, chunk);
    },
  });
}
