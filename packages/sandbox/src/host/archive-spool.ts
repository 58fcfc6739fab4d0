/**
 * Archives on their way into a sandbox, kept on this host's disk until all of each has come and was found good. Invariants: of an
 * archive that is refused, cut or given up nothing is unpacked; each and all of them together keep to a size; no file outlives its use,
 * not even a killed process' (it has no name by the time anything is in it).
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, unlink } from "node:fs/promises";
import path from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { unavailable } from "../remote/wire-error.ts";
import { checkedArchive } from "../shared/checked-archive.ts";

export interface SpoolLimits {
  /** Bytes of one archive. */
  readonly maxBytes: number;
  /** Bytes of all that are here at once. */
  readonly maxTotalBytes: number;
}

const gibibyte = 1024 ** 3;
const usualLimits: SpoolLimits = { maxBytes: 4 * gibibyte, maxTotalBytes: 16 * gibibyte };
const retryAfterMs = 5_000;

export class ArchiveSpool {
  readonly #folder: string;
  readonly #limits: SpoolLimits;
  #totalBytes = 0;

  constructor(folder: string, limits: SpoolLimits = usualLimits) {
    this.#folder = folder;
    this.#limits = limits;
  }

  /**
   * Reads all of `tar`, then has it unpacked, rewritten as `checkedArchive` does.
   * @param target where it is to be unpacked, for messages
   * @throws SandboxFileError("bad_archive" | "too_large"), BoundaryError("sandbox", "full" | "unavailable"), what `tar` or `unpack` throw
   */
  async whole<T>(
    tar: AsyncIterable<Uint8Array>,
    target: string,
    unpack: (checked: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<T> {
    const file = await this.#openNameless();
    let bytes = 0;
    try {
      for await (const chunk of checkedArchive(tar, target)) {
        this.#checkSize(target, bytes, chunk.length);
        bytes += chunk.length;
        this.#totalBytes += chunk.length;
        await file.writeFile(chunk).catch((error: unknown) => {
          throw noRoom(error);
        });
      }
      return await unpack(file.createReadStream({ start: 0, end: bytes - 1, autoClose: false }));
    } finally {
      this.#totalBytes -= bytes;
      await file.close();
    }
  }

  #checkSize(target: string, bytes: number, more: number): void {
    const { maxBytes, maxTotalBytes } = this.#limits;
    if (bytes + more > maxBytes) {
      throw new SandboxFileError("too_large", target, `the archive has more than ${maxBytes} bytes`);
    }
    if (this.#totalBytes + more > maxTotalBytes) {
      const message = `archives of more than ${maxTotalBytes} bytes are on their way into this host's sandboxes`;
      throw new BoundaryError("sandbox", "full", message, { retryable: true, retryAfterMs });
    }
  }

  async #openNameless(): Promise<FileHandle> {
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      const name = path.join(this.#folder, randomUUID());
      const file = await open(name, "wx+", 0o600);
      await unlink(name);
      return file;
    } catch (error) {
      throw noRoom(error);
    }
  }
}

/** The host's trouble, not the archive's. */
function noRoom(cause: unknown): BoundaryError {
  const message = cause instanceof Error ? cause.message : String(cause);
  return unavailable(`the host can't keep an archive until it is whole: ${message}`, cause);
}
