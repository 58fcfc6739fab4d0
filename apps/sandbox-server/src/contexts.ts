/**
 * Build contexts on their way to hosts: tars in a folder, named by the hash of their bytes. Invariant: a file that is there is whole
 * and is what its name says; together, with those that are still coming, they keep to a size, the longest unused go first; one that does
 * not come in its time is given up.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { partPrefix } from "@rolldeck/sandbox/remote/context-tar";
import { refused, unavailable } from "@rolldeck/sandbox/remote/wire-error";
import { unlessAborted } from "@rolldeck/sandbox/shared/waiting";

/** For one to come: a client that stands still must not hold its room for good. */
const defaultLimitMs = 600_000;

export class Contexts {
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #limitMs: number;
  /** Of those that are coming. */
  #comingBytes = 0;

  constructor(folder: string, maxBytes: number, limitMs = defaultLimitMs) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
    this.#limitMs = limitMs;
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

  /** @throws BoundaryError("sandbox"): `refused` when it is not what was told, `full` while too many come, `unavailable` when it is late */
  async put(hash: string, bytes: number, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    if (bytes > this.#maxBytes) throw refused(`a build context of more than ${this.#maxBytes} bytes`);
    if (this.#comingBytes + bytes > this.#maxBytes) {
      const message = `build contexts of ${this.#comingBytes} bytes are on their way to the sandbox server`;
      throw new BoundaryError("sandbox", "full", message, { retryable: true, retryAfterMs: 5_000 });
    }
    this.#comingBytes += bytes;
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await this.#makeRoom();
      await this.#receive(hash, bytes, chunks);
    } finally {
      this.#comingBytes -= bytes;
    }
  }

  async #receive(hash: string, bytes: number, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const late = AbortSignal.timeout(this.#limitMs);
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
      const written = pipeline(checked(), createWriteStream(part, { flags: "wx", mode: 0o600 }), { signal: late });
      // Not by the pipeline alone: it waits for a source that stands still.
      await unlessAborted(written, late);
      if (came !== bytes || sum.digest("hex") !== hash) {
        throw refused("the build context is not what its hash says: it changed meanwhile");
      }
      await rename(part, path.join(this.#folder, hash));
    } catch (error) {
      throw late.aborted ? unavailable(`the build context did not come in ${this.#limitMs / 1000} s`, error) : error;
    } finally {
      await rm(part, { force: true });
    }
  }

  /** For all that are coming. */
  async #makeRoom(): Promise<void> {
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
      if (kept + this.#comingBytes <= this.#maxBytes) break;
      await rm(path.join(this.#folder, name), { force: true });
      kept -= size;
    }
  }
}
