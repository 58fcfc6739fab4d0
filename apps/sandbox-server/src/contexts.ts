/**
 * Build contexts on their way to hosts: tars in a folder, named by the hash of their bytes. Invariant: a file that is there is whole
 * and is what its name says; together they keep to a size, the longest unused go first.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { partPrefix } from "@rolldeck/sandbox/remote/context-tar";
import { refused } from "@rolldeck/sandbox/remote/wire-error";

export class Contexts {
  readonly #folder: string;
  readonly #maxBytes: number;

  constructor(folder: string, maxBytes: number) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  /** Null: it is not here. Bytes of its tar. */
  async find(hash: string): Promise<{ readonly bytes: number } | null> {
    const file = path.join(this.#folder, hash);
    try {
      const { size } = await stat(file);
      const now = new Date();
      await utimes(file, now, now);
      return { bytes: size };
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
      throw error;
    }
  }

  read(hash: string): AsyncIterable<Uint8Array> {
    return createReadStream(path.join(this.#folder, hash), { highWaterMark: 64 * 1024 });
  }

  /** @throws BoundaryError("sandbox", "refused") when it is not what was told */
  async put(hash: string, bytes: number, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await this.#makeRoom(bytes);
    const part = path.join(this.#folder, `${partPrefix}${randomUUID()}`);
    try {
      const sum = createHash("sha256");
      let came = 0;
      const checked = async function* (): AsyncGenerator<Uint8Array> {
        for await (const chunk of chunks) {
          came += chunk.length;
          if (came > bytes) throw refused("a build context of more bytes than were told");
          sum.update(chunk);
          yield chunk;
        }
      };
      await pipeline(checked(), createWriteStream(part, { flags: "wx", mode: 0o600 }));
      if (came !== bytes || sum.digest("hex") !== hash) {
        throw refused("the build context is not what its hash says: it changed meanwhile");
      }
      await rename(part, path.join(this.#folder, hash));
    } finally {
      await rm(part, { force: true });
    }
  }

  async #makeRoom(bytes: number): Promise<void> {
    const names = (await readdir(this.#folder)).filter((name) => !name.startsWith(partPrefix));
    const files = await Promise.all(
      names.map(async (name) => {
        const { size, mtimeMs } = await stat(path.join(this.#folder, name));
        return { name, size, usedAtMs: mtimeMs };
      }),
    );
    files.sort((a, b) => a.usedAtMs - b.usedAtMs);
    let kept = files.reduce((sum, { size }) => sum + size, 0);
    for (const { name, size } of files) {
      if (kept + bytes <= this.#maxBytes) break;
      await rm(path.join(this.#folder, name), { force: true });
      kept -= size;
    }
  }
}
