/**
 * Corpora of this process, each indexed once. Invariants: a file that changed is indexed anew; at most `maxOpen` files are held
 * and the longest unused goes first; who asks while a corpus is being indexed waits for the same one; a failure is not kept.
 */
import { stat } from "node:fs/promises";
import { InputError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { type Corpus, CorpusDocument, corpusOf } from "./corpus.ts";
import { type CorpusLimits, corpusLimits, readCorpusFile } from "./corpus-file.ts";

export class OpenCorpora {
  readonly #maxOpen: number;
  readonly #limits: CorpusLimits;
  /** By path and stamp; least recently used first. */
  readonly #files = new Map<string, Promise<Corpus>>();
  /** Lists that instances carry; an index lives as long as its list. */
  readonly #lists = new WeakMap<readonly unknown[], Corpus>();

  constructor(options: { readonly maxOpen: number; readonly limits?: CorpusLimits }) {
    this.#maxOpen = options.maxOpen;
    this.#limits = options.limits ?? corpusLimits;
  }

  /** @param path absolute @throws InputError that says what is wrong with the file */
  async file(path: string): Promise<Corpus> {
    const { size, mtimeMs, ino } = await stat(path);
    const key = JSON.stringify([path, size, mtimeMs, ino]);
    const corpus = this.#files.get(key) ?? readCorpusFile(path, this.#limits);
    this.#files.delete(key);
    this.#files.set(key, corpus);
    corpus.catch(() => this.#files.delete(key));
    for (const oldest of [...this.#files.keys()].slice(0, -this.#maxOpen)) this.#files.delete(oldest);
    return corpus;
  }

  /** @param documents never changed afterwards @throws InputError when one is no document */
  list(documents: readonly unknown[]): Corpus {
    const known = this.#lists.get(documents);
    if (known !== undefined) return known;
    const parsed = z.array(CorpusDocument).safeParse(documents);
    if (!parsed.success) {
      throw new InputError([{ path: "search.corpus", message: parsed.error.issues[0]?.message ?? "no documents" }]);
    }
    const corpus = corpusOf(parsed.data);
    this.#lists.set(documents, corpus);
    return corpus;
  }
}
