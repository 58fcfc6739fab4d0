/**
 * Which hosts may have sandboxes, over restarts: until all of them are back, a server that has just started does not know what there
 * is. Invariant: a host is written down before it is given anything.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import { z } from "zod";

export class KnownHosts {
  readonly #file: string;
  readonly #ids: Set<string>;
  /** Of them, those that were written by this process. */
  readonly #kept = new Set<string>();
  #writing: Promise<void> = Promise.resolve();
  /** Ids of those that the process before this one knew; null: it left no word that can be read. */
  readonly before: ReadonlySet<string> | null;

  /** @param isFirst no server has been here before, so that there can be no host */
  static async load(file: string, isFirst: boolean): Promise<KnownHosts> {
    const read = await readFile(file, "utf8")
      .then((text) => z.array(z.string()).parse(JSON.parse(text)))
      .catch((error: unknown) => {
        const isAbsent = error instanceof Error && "code" in error && error.code === "ENOENT";
        // Lost or broken: then it is waited for hosts as long as for one that stays away.
        return isAbsent && isFirst ? [] : null;
      });
    return new KnownHosts(file, read);
  }

  private constructor(file: string, ids: readonly string[] | null) {
    this.#file = file;
    this.#ids = new Set(ids ?? []);
    this.before = ids === null ? null : new Set(ids);
  }

  /** Resolves when it is kept. @throws when it can't be */
  async add(hostId: string): Promise<void> {
    if (this.#kept.has(hostId)) return;
    this.#ids.add(hostId);
    await this.#write();
    this.#kept.add(hostId);
  }

  /** Nothing is waited for from it any more. @throws when that can't be kept, which costs a wait and no more */
  async remove(hostId: string): Promise<void> {
    this.#kept.delete(hostId);
    if (this.#ids.delete(hostId)) await this.#write();
  }

  /** One after another: what is written last is what holds. */
  #write(): Promise<void> {
    const writing = this.#writing.then(async () => {
      await writeFile(`${this.#file}.part`, JSON.stringify([...this.#ids]), { mode: 0o600 });
      await rename(`${this.#file}.part`, this.#file);
    });
    this.#writing = writing.catch(() => undefined);
    return writing;
  }
}
