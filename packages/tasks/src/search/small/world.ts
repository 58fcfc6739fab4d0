/**
 * A small world to search: 174 names, each in one of 26 places, and each place with a code. "kx: Q" and "Q: 7" are two of its
 * 200 documents: no document holds both a name and a code, so a name's code can't be found with one search.
 *
 * Invariants: names are different pairs of small letters, places the capitals; the splits are disjoint: which split a chain of
 * name, place and code belongs to is read off the chain itself, so what is asked of the held-out worlds occurs in no training
 * world. Words are this short, and codes alone have digits, because a policy of under a million parameters has to learn to copy
 * them in a minute.
 */
import type { Split } from "@rolldeck/contracts/ports/task";
import { hashText, type Random, seededRandom } from "../../random.ts";

export const namesPerWorld = 174;
const capitals = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
const names = [..."abcdefghijklmn"].flatMap((first) => [..."mnopqrstuvwxyz"].map((second) => first + second));
const heldOutShare = 4;

export interface SearchChain {
  readonly name: string;
  readonly place: string;
  /** One digit. */
  readonly code: string;
}
export interface SearchWorld {
  readonly chains: readonly SearchChain[];
  readonly documents: { readonly id: string; readonly title: string; readonly text: string }[];
}

/** Deterministic in (split, number). */
export function searchWorld(split: Split, number: number): SearchWorld {
  const random = seededRandom(`search-small ${split} ${number}`);
  const places = capitals.map((place) => ({ place, code: String(random.integer(0, 9)) }));
  const chains = drawChains(random, split, places);
  const facts = random.shuffled([
    ...chains.map(({ name, place }) => ({ title: name, text: place })),
    ...places.map(({ place, code }) => ({ title: place, text: code })),
  ]);
  return { chains, documents: facts.map((fact, at) => ({ id: documentId(at), ...fact })) };
}

/** A name whose chains all belong to the other split is left out; a quarter or more belong to either, so few are. */
function drawChains(random: Random, split: Split, places: readonly Omit<SearchChain, "name">[]): SearchChain[] {
  const all = random.shuffled(names).flatMap((name): SearchChain[] => {
    const own = places.map((place) => ({ name, ...place })).filter((chain) => splitOf(chain) === split);
    const drawn = own[random.integer(0, own.length - 1)];
    return drawn === undefined ? [] : [drawn];
  });
  return all.slice(0, namesPerWorld);
}

/** The one split that may hold this chain: one in four is held out. */
export const splitOf = ({ name, place, code }: SearchChain): Split =>
  hashText(`split ${name} ${place} ${code}`) % heldOutShare === 0 ? "evaluate" : "train";

/** Two letters, from "aa". */
const documentId = (position: number): string =>
  String.fromCharCode(97 + Math.floor(position / 26), 97 + (position % 26));
