/**
 * All files of one tree, with what is looked up across them: words, names, near names. Immutable; a rollout's changes lie over it in
 * a RepositoryView. Building takes what parsing left, so equal trees share one.
 */
import { distance } from "fastest-levenshtein";
import MiniSearch from "minisearch";
import { codeTerms } from "./code-terms.ts";
import type { EntityRef, IndexedFile } from "./indexed-file.ts";
import { lastName } from "./source-file.ts";

/** Documents of a term, as places in `documents`, with its weight in each. */
interface Postings {
  readonly documents: Uint32Array;
  readonly weights: Float32Array;
}

export class RepositoryIndex {
  readonly files: ReadonlyMap<string, IndexedFile>;
  readonly documents: readonly EntityRef[];
  /** Entities by the last part of their name. */
  readonly named: ReadonlyMap<string, readonly EntityRef[]>;
  readonly namedCaseless: ReadonlyMap<string, readonly EntityRef[]>;
  /** Memory it takes besides its files, roughly. */
  readonly ownBytes: number;
  readonly #postings: ReadonlyMap<string, Postings>;
  readonly #names: readonly string[];
  readonly #near: MiniSearch<{ readonly id: number; readonly name: string }>;

  constructor(files: readonly IndexedFile[]) {
    this.files = new Map(files.map((file) => [file.source.path, file]));
    this.documents = files.flatMap((file) => file.terms.documents.map(({ place }) => ({ file, place })));
    this.#postings = postingsOf(files);
    this.named = groupByName(files, lastName);
    this.namedCaseless = groupByName(files, (name) => lastName(name).toLowerCase());
    this.#names = [...this.named.keys()];
    this.#near = new MiniSearch({ fields: ["name"], tokenize: nameParts, processTerm: (term) => term });
    this.#near.addAll(this.#names.map((name, id) => ({ id, name })));
    const postings = [...this.#postings.values()].reduce((sum, one) => sum + one.weights.length * 8 + 200, 0);
    this.ownBytes = this.documents.length * 100 + this.#names.length * 1000 + postings;
  }

  postings(term: string): Postings | undefined {
    return this.#postings.get(term);
  }

  /** Names that look like this one, the nearest first: letters differ, or parts are missing, added or in another order. */
  nearNames(name: string, limit: number): { readonly name: string; readonly nearness: number }[] {
    const wanted = name.toLowerCase();
    const byParts = this.#near.search(name, { prefix: (term) => term.length > 2, fuzzy: 0.25, combineWith: "OR" });
    const best = byParts[0]?.score ?? 1;
    const scores = new Map<string, number>();
    for (const { id, score } of byParts.slice(0, 50)) {
      const found = this.#names[Number(id)];
      if (found !== undefined) scores.set(found, (score / best + nearness(wanted, found)) / 2);
    }
    for (const found of this.#names) {
      if (Math.abs(found.length - wanted.length) > wanted.length / 3) continue;
      const near = nearness(wanted, found);
      if (near >= 2 / 3) scores.set(found, Math.max(scores.get(found) ?? 0, near));
    }
    return [...scores]
      .map(([found, score]) => ({ name: found, nearness: score }))
      .filter((one) => one.nearness >= 0.5)
      .sort((a, b) => b.nearness - a.nearness || (a.name < b.name ? -1 : 1))
      .slice(0, limit);
  }
}

/** 1 for the same letters, 0 for none in common. */
export const nearness = (wanted: string, name: string): number =>
  1 - distance(wanted, name.toLowerCase()) / Math.max(wanted.length, name.length, 1);

const nameParts = (name: string): string[] => codeTerms(name).map((term) => term.replace(/^=/, ""));

function groupByName(files: readonly IndexedFile[], key: (name: string) => string): Map<string, EntityRef[]> {
  const groups = new Map<string, EntityRef[]>();
  for (const file of files) {
    for (const [place, { name }] of file.source.entities.entries()) {
      const group = groups.get(key(name));
      if (group) group.push({ file, place });
      else groups.set(key(name), [{ file, place }]);
    }
  }
  return groups;
}

function postingsOf(files: readonly IndexedFile[]): Map<string, Postings> {
  const counts = new Map<string, number>();
  for (const { terms } of files) {
    const own = new Uint32Array(terms.vocabulary.length);
    for (const { terms: places } of terms.documents) for (const place of places) own[place] = (own[place] ?? 0) + 1;
    for (const [place, term] of terms.vocabulary.entries())
      counts.set(term, (counts.get(term) ?? 0) + (own[place] ?? 0));
  }
  const postings = new Map<string, Postings & { filled: number }>();
  for (const [term, count] of counts) {
    postings.set(term, { documents: new Uint32Array(count), weights: new Float32Array(count), filled: 0 });
  }
  let document = 0;
  for (const { terms } of files) {
    const lists = terms.vocabulary.map((term) => postings.get(term));
    for (const { terms: places, weights } of terms.documents) {
      for (let i = 0; i < places.length; i++) {
        const list = lists[places[i] ?? 0];
        if (list === undefined) continue;
        list.documents[list.filled] = document;
        list.weights[list.filled] = weights[i] ?? 0;
        list.filled += 1;
      }
      document += 1;
    }
  }
  return postings;
}
