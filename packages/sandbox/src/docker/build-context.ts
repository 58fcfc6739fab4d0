/**
 * A folder as the context of an image build: what is in it, a name for that content, and a tar of it. Equal folders have equal
 * names, whatever their times and owners. Links are sent as links; nothing outside the folder is read.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { pipeline } from "node:stream/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type Pack, pack } from "tar-stream";
import { DockerIgnore } from "./docker-ignore.ts";

const maxFiles = 100_000;
const maxBytes = 4 * 1024 * 1024 * 1024;

interface ContextEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link";
  readonly mode: number;
  readonly size: number;
  readonly target: string;
}

export interface BuildContext {
  /** Of content, names and modes; 64 hexadecimal digits. */
  readonly hash: string;
  /** A new stream each time. */
  tar(): Pack;
}

const unfit = (message: string, cause?: unknown): BoundaryError =>
  new BoundaryError("sandbox", "no_image", message, { cause });

/** @throws BoundaryError("sandbox", "no_image") when the folder can't be one */
export async function readBuildContext(folder: string, dockerfile: string): Promise<BuildContext> {
  const inside = posix.normalize(dockerfile);
  if (inside.startsWith("/") || inside === ".." || inside.startsWith("../")) {
    throw unfit(`the Dockerfile ${dockerfile} lies outside of its build folder`);
  }
  const ignore = new DockerIgnore(await ignoreText(folder, inside));
  const entries: ContextEntry[] = [];
  try {
    await walk(folder, "", { ignore, always: new Set([inside, ".dockerignore"]) }, entries);
  } catch (error) {
    if (error instanceof BoundaryError) throw error;
    throw unfit(`the build folder ${folder} can't be read`, error);
  }
  if (!entries.some((entry) => entry.name === inside))
    throw unfit(`there is no ${inside} in the build folder ${folder}`);
  return { hash: await hashOf(folder, inside, entries), tar: () => tarOf(folder, entries) };
}

/** A Dockerfile may have an ignore file of its own. */
async function ignoreText(folder: string, dockerfile: string): Promise<string> {
  for (const name of [`${dockerfile}.dockerignore`, ".dockerignore"]) {
    try {
      return await readFile(join(folder, name), "utf8");
    } catch {
      // Most folders have none.
    }
  }
  return "";
}

interface Picking {
  readonly ignore: DockerIgnore;
  readonly always: ReadonlySet<string>;
}

async function walk(folder: string, under: string, picking: Picking, entries: ContextEntry[]): Promise<void> {
  const names = (await readdir(join(folder, under))).sort();
  for (const own of names) {
    const name = under === "" ? own : `${under}/${own}`;
    const facts = await lstat(join(folder, name));
    const out = picking.ignore.leavesOut(name) && !picking.always.has(name);
    const entry = { name, mode: facts.mode & 0o777, size: 0, target: "" };
    if (facts.isDirectory()) {
      if (!out) entries.push({ ...entry, kind: "folder" });
      const wanted = [...picking.always].some((path) => path.startsWith(`${name}/`));
      if (!out || picking.ignore.looksInside || wanted) await walk(folder, name, picking, entries);
    } else if (out) continue;
    else if (facts.isSymbolicLink()) {
      entries.push({ ...entry, kind: "link", target: await readlink(join(folder, name)) });
    } else if (facts.isFile()) entries.push({ ...entry, kind: "file", size: facts.size });
    else throw unfit(`${name} in the build folder ${folder} is neither file nor folder nor link`);
    bound(folder, entries);
  }
}

function bound(folder: string, entries: readonly ContextEntry[]): void {
  if (entries.length > maxFiles) throw unfit(`the build folder ${folder} holds more than ${maxFiles} files`);
}

async function hashOf(folder: string, dockerfile: string, entries: readonly ContextEntry[]): Promise<string> {
  const hash = createHash("sha256").update(JSON.stringify([dockerfile]));
  let bytes = 0;
  for (const { name, kind, mode, size, target } of entries) {
    hash.update(`\n${JSON.stringify([name, kind, mode, size, target])}\n`);
    if (kind !== "file") continue;
    bytes += size;
    if (bytes > maxBytes) throw unfit(`the build folder ${folder} is larger than ${maxBytes} bytes`);
    await pipeline(createReadStream(join(folder, name)), async (chunks) => {
      for await (const chunk of chunks) hash.update(chunk);
    });
  }
  return hash.digest("hex");
}

function tarOf(folder: string, entries: readonly ContextEntry[]): Pack {
  const output = pack();
  const mtime = new Date(0);
  (async () => {
    for (const { name, kind, mode, size, target } of entries) {
      if (output.destroyed) return;
      if (kind === "folder") output.entry({ name: `${name}/`, type: "directory", mode, mtime });
      else if (kind === "link") output.entry({ name, type: "symlink", linkname: target, mtime });
      else {
        await new Promise<void>((resolve, reject) => {
          const sink = output.entry({ name, size, mode, mtime }, (error) => (error ? reject(error) : resolve()));
          sink.on("error", reject);
          createReadStream(join(folder, name), size > 0 ? { end: size - 1 } : {})
            .on("error", reject)
            .pipe(sink);
        });
      }
    }
    output.finalize();
  })().catch((error: unknown) => output.destroy(error instanceof Error ? error : new Error(String(error))));
  return output;
}
