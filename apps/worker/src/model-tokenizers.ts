/** Tokenizers by model name, each loaded once per process, and the hash of what a model folder says. */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";

export interface ModelFolders {
  /** Folder of a model under the configured roots. @throws InputError outside them */
  resolve(model: string): Promise<string> | string;
  load(folder: string): Promise<Tokenizer>;
}

export class ModelTokenizers {
  readonly #folders: ModelFolders;
  readonly #tokenizers = new Map<string, Promise<Tokenizer>>();
  readonly #hashes = new Map<string, Promise<string>>();

  constructor(folders: ModelFolders) {
    this.#folders = folders;
  }

  load(model: string): Promise<Tokenizer> {
    return once(this.#tokenizers, model, async () => this.#folders.load(await this.#folders.resolve(model)));
  }

  /** Of the folder's files by name and content. */
  contentHash(model: string): Promise<string> {
    return once(this.#hashes, model, async () => hashFolder(await this.#folders.resolve(model)));
  }
}

/** A failed attempt is not kept: the folder may be put right while the process runs. */
function once<T>(known: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const before = known.get(key);
  if (before !== undefined) return before;
  const made = make();
  known.set(key, made);
  made.catch(() => known.delete(key));
  return made;
}

async function hashFolder(folder: string): Promise<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
  const hash = createHash("sha256");
  for (const name of names.sort()) {
    hash.update(`${name}\0`).update(
      createHash("sha256")
        .update(await readFile(join(folder, name)))
        .digest(),
    );
  }
  return hash.digest("hex");
}
