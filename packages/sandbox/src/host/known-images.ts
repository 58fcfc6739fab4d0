/** Keys of images that were used on this host, over restarts: the gateway sends a sandbox where its image is. The oldest go first. */
import { readFile, rename, writeFile } from "node:fs/promises";
import { z } from "zod";

const maxKnown = 1_000;
/** A longer one could not be told to the gateway. */
const maxKeyLength = 600;

export class KnownImages {
  readonly #file: string;
  readonly #keys: Set<string>;
  #writing: Promise<void> = Promise.resolve();

  static async load(file: string): Promise<KnownImages> {
    const keys = await readFile(file, "utf8")
      .then((text) => z.array(z.string().max(maxKeyLength)).parse(JSON.parse(text)))
      // The first start, or a file that was lost or is broken: knowledge that comes back by itself.
      .catch(() => []);
    return new KnownImages(file, keys);
  }

  private constructor(file: string, keys: readonly string[]) {
    this.#file = file;
    this.#keys = new Set(keys);
  }

  all(): string[] {
    return [...this.#keys];
  }

  /** Resolves when it is kept, or could not be: no opening fails for that. */
  async saw(key: string): Promise<void> {
    if (this.#keys.has(key) || key.length > maxKeyLength) return;
    this.#keys.add(key);
    for (const oldest of this.#keys) {
      if (this.#keys.size <= maxKnown) break;
      this.#keys.delete(oldest);
    }
    this.#writing = this.#writing.then(() => this.#write()).catch(() => undefined);
    await this.#writing;
  }

  async #write(): Promise<void> {
    await writeFile(`${this.#file}.part`, JSON.stringify(this.all()), { mode: 0o600 });
    await rename(`${this.#file}.part`, this.#file);
  }
}
