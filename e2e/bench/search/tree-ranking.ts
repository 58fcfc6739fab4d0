/**
 * One tree under several rankings: the product's own among others, so that weights can be chosen on some packages and measured on
 * another. The tree is followed through its patches in each.
 */
import { fileTerms, usualFields } from "@rolldeck/tools/code-search/file-terms";
import type { EntityRef, IndexedFile } from "@rolldeck/tools/code-search/indexed-file";
import { RepositoryIndex } from "@rolldeck/tools/code-search/repository-index";
import { RepositoryView } from "@rolldeck/tools/code-search/repository-view";
import { searchText, usualSaturation } from "@rolldeck/tools/code-search/text-search";

interface Ranking {
  /** Times the product's weight of a word in a name, and in the name of what holds it. */
  readonly names: number;
  readonly saturation: number;
}

/** The product's first: of equals it is taken. */
export const rankings: readonly Ranking[] = [
  { names: 1, saturation: usualSaturation },
  ...[1, 0.5, 2]
    .flatMap((names) => [0.5, 1, 2].map((times) => ({ names, saturation: times * usualSaturation })))
    .filter(({ names, saturation }) => names !== 1 || saturation !== usualSaturation),
];

export class TreeRanking {
  readonly #files = new Map<string, IndexedFile>();
  #view: RepositoryView;

  constructor(
    readonly names: number,
    files: Iterable<IndexedFile>,
  ) {
    for (const file of files) this.#files.set(file.source.path, this.#weighed(file));
    this.#view = this.#whole();
  }

  /** @param now undefined = it is gone */
  follow(name: string, now: IndexedFile | undefined): void {
    if (now === undefined) {
      this.#files.delete(name);
      this.#view.remove(name);
      return;
    }
    const file = this.#weighed(now);
    this.#files.set(name, file);
    this.#view.put(file);
  }

  /** What a rollout would do with as many changes. */
  settle(): void {
    if (this.#view.changes > 100) this.#view = this.#whole();
  }

  search(query: string, saturation: number, accepts: (ref: EntityRef) => boolean): EntityRef[] {
    return searchText(this.#view, query, { limit: 50, accepts, saturation });
  }

  #whole(): RepositoryView {
    return new RepositoryView(new RepositoryIndex([...this.#files.values()]));
  }

  #weighed(file: IndexedFile): IndexedFile {
    if (this.names === 1) return file;
    const { name, owner, ...others } = usualFields;
    const scaled = {
      ...others,
      name: { ...name, weight: name.weight * this.names },
      owner: { ...owner, weight: owner.weight * this.names },
    };
    return { ...file, terms: fileTerms(file.source, scaled) };
  }
}
