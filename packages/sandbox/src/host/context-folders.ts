/**
 * Build contexts that came over the wire, each unpacked once in a folder named by the hash of its tar. Invariant: a folder that is
 * there is whole (unpacked beside and renamed); the oldest go when there are too many.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { partPrefix, summing, unpackContext } from "../remote/context-tar.ts";
import { refused } from "../remote/wire-error.ts";

const maxContexts = 200;

export class ContextFolders {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Absolute path, or null. Used last, gone last. */
  async find(hash: string): Promise<string | null> {
    const folder = path.join(this.#root, hash);
    try {
      if (!(await stat(folder)).isDirectory()) return null;
      const now = new Date();
      await utimes(folder, now, now);
      return folder;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
      throw error;
    }
  }

  /** @throws BoundaryError("sandbox", "refused") when it is not what its hash says; SandboxFileError for one that leads out */
  async put(hash: string, bytes: number, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const part = path.join(this.#root, `${partPrefix}${randomUUID()}`);
    await mkdir(part, { recursive: true, mode: 0o700 });
    try {
      const sum = createHash("sha256");
      await unpackContext(Readable.from(atMost(chunks, bytes)).compose(summing(sum)), part, bytes);
      if (sum.digest("hex") !== hash)
        throw refused("the build context is not what its hash says: it changed meanwhile");
      await rename(part, path.join(this.#root, hash)).catch(async (error: unknown) => {
        if ((await this.find(hash)) === null) throw error;
      });
    } finally {
      await rm(part, { recursive: true, force: true });
    }
    await this.#dropOldest();
  }

  async #dropOldest(): Promise<void> {
    const names = (await readdir(this.#root)).filter((name) => !name.startsWith(partPrefix));
    if (names.length <= maxContexts) return;
    const aged = await Promise.all(
      names.map(async (name) => ({ name, usedAtMs: (await stat(path.join(this.#root, name))).mtimeMs })),
    );
    aged.sort((a, b) => a.usedAtMs - b.usedAtMs);
    for (const { name } of aged.slice(0, names.length - maxContexts)) {
      await rm(path.join(this.#root, name), { recursive: true, force: true });
    }
  }
}

async function* atMost(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw refused(`a build context of more than the ${maxBytes} bytes that were told`);
    yield chunk;
  }
}
