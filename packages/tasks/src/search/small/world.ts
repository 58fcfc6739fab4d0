/**
 * A small world to search: 100 names, each in a place, and each place with a code. "kx:QB" and "QB:37" are two of its 200
 * documents: no document holds both a name and its code, so the code can't be found with one search.
 *
 * Invariants: names and places are 200 different pairs of letters, also to a search that does not tell capitals from small
 * letters; the splits' chains are disjoint: which split a chain of name, place and code belongs to is read off the chain itself,
 * so what is asked of the held-out worlds occurs in no training world. Every position of every word has an alphabet of its own:
 * a policy of under a million parameters learns in a minute to copy such words, and not to copy any others.
 */
import type { Split } from "@rolldeck/contracts/ports/task";
import { hashText, seededRandom } from "../../random.ts";

export const chainsPerWorld = 100;
const early = [..."abcdefghijklm"];
const late = [..."nopqrstuvwxyz"];
const names = early.flatMap((first) => late.map((second) => first + second));
const places = late.flatMap((first) => early.map((second) => (first + second).toUpperCase()));
const heldOutShare = 4;

export interface SearchChain {
  readonly name: string;
  readonly place: string;
  /** Two digits. */
  readonly code: string;
}
export interface SearchWorld {
  readonly chains: readonly SearchChain[];
  readonly documents: { readonly id: string; readonly text: string }[];
}

/** Deterministic in (split, number). */
export function searchWorld(split: Split, number: number): SearchWorld {
  const random = seededRandom(`search-small ${split} ${number}`);
  const ownPlaces = random.shuffled(places);
  const ownNames = random.shuffled(names).slice(0, chainsPerWorld);
  const chains = ownNames.map((name, at): SearchChain => {
    const place = ownPlaces[at] ?? "";
    // A quarter or more of all chains belong to either split, so this ends.
    for (;;) {
      const code = String(random.integer(0, 99)).padStart(2, "0");
      const chain = { name, place, code };
      if (splitOf(chain) === split) return chain;
    }
  });
  const texts = random.shuffled(chains.flatMap(({ name, place, code }) => [`${name}:${place}`, `${place}:${code}`]));
  return { chains, documents: texts.map((text, at) => ({ id: documentId(at), text })) };
}

/** Two letters: digits are what codes are made of. */
const documentId = (position: number): string =>
  String.fromCharCode(97 + Math.floor(position / 26), 97 + (position % 26));

/** The one split that may hold this chain: one in four is held out. */
export const splitOf = ({ name, place, code }: SearchChain): Split =>
  hashText(`split ${name} ${place} ${code}`) % heldOutShare === 0 ? "evaluate" : "train";
