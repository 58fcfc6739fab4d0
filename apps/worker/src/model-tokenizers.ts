/** Tokenizers by model, chat template and thinking, each loaded once per process, and the hash of what they are made of. */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TokenizerOptions } from "@rolldeck/agent/io/load-tokenizer";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { RunConfig } from "@rolldeck/contracts/run-config";

/** What of a run's model decides how it writes text. */
export type ModelText = Pick<RunConfig["model"], "name" | "chatTemplate" | "thinking">;

export interface ModelFolders {
  /** Folder of a model under the configured roots. @throws InputError outside them */
  resolve(model: string): Promise<string> | string;
  /** Text of a named chat template. @throws InputError when there is none */
  template(name: string): Promise<string>;
  load(folder: string, options: TokenizerOptions): Promise<Tokenizer>;
}

export class ModelTokenizers {
  readonly #folders: ModelFolders;
  readonly #tokenizers = new Map<string, Promise<Tokenizer>>();
  readonly #hashes = new Map<string, Promise<string>>();

  constructor(folders: ModelFolders) {
    this.#folders = folders;
  }

  load(model: ModelText): Promise<Tokenizer> {
    return once(this.#tokenizers, keyOf(model), async () =>
      this.#folders.load(await this.#folders.resolve(model.name), {
        thinking: model.thinking,
        ...(model.chatTemplate === null ? {} : { template: await this.#folders.template(model.chatTemplate) }),
      }),
    );
  }

  /** Of the folder's files by name and content, and of what the config says about its text. */
  contentHash(model: ModelText): Promise<string> {
    return once(this.#hashes, keyOf(model), async () => {
      const folder = await hashFolder(await this.#folders.resolve(model.name));
      if (model.chatTemplate === null && model.thinking === null) return folder;
      const template = model.chatTemplate === null ? null : await this.#folders.template(model.chatTemplate);
      return createHash("sha256")
        .update(JSON.stringify([folder, template, model.thinking]))
        .digest("hex");
    });
  }
}

const keyOf = ({ name, chatTemplate, thinking }: ModelText): string => JSON.stringify([name, chatTemplate, thinking]);

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
