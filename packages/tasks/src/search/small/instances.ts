/**
 * Instances without end: what is the code of a name's place? Eight of a world's names are asked for, then comes the next
 * world. With the tool off the corpus is empty and every search answers that there is nothing.
 */
import type { Split, TaskInstance } from "@rolldeck/contracts/ports/task";
import { z } from "zod";
import { type SearchChain, type SearchWorld, searchWorld } from "./world.ts";

export const askedPerWorld = 8;
/** Documents of one search: a place's own comes before those of the names that are in it. */
export const topK = 1;
export const snippetCharacters = 100;

export const SearchSmallOptions = z.object({
  toolOff: z.boolean().default(false).describe("Searches find nothing: what is left is guessing"),
});

/** What the verifier reads of an instance's state; `search` is the tool's. */
export const SearchSmallState = z.object({
  name: z.string(),
  answers: z.array(z.string()).length(1),
});

/** The chain that this instance asks for, with its world. Deterministic in (split, index). */
export function askedChain(split: Split, index: number): { readonly chain: SearchChain; readonly world: SearchWorld } {
  if (!Number.isSafeInteger(index) || index < 0)
    throw new RangeError(`instance index ${index} is not a whole number from 0`);
  const world = recentWorld(split, Math.floor(index / askedPerWorld));
  const chain = world.chains[index % askedPerWorld];
  if (chain === undefined) throw new RangeError(`a world has no chain ${index % askedPerWorld}`);
  return { chain, world };
}

export function searchSmallInstance(split: Split, index: number, toolOff: boolean): TaskInstance {
  const { chain, world } = askedChain(split, index);
  const { name, code } = chain;
  // Always the world's own list: the tool keeps the index of a list that it knows.
  const search = { corpus: toolOff ? nothing : world.documents, topK, snippetCharacters };
  return { instanceId: `${split}-${index}`, split, index, state: { name, answers: [code], search } };
}

const nothing: [] = [];
const maxRecent = 64;
const recent = new Map<string, SearchWorld>();

/** Rollouts of a step ask for the same few worlds. */
function recentWorld(split: Split, number: number): SearchWorld {
  const key = `${split} ${number}`;
  const world = recent.get(key) ?? searchWorld(split, number);
  recent.delete(key);
  recent.set(key, world);
  for (const oldest of [...recent.keys()].slice(0, -maxRecent)) recent.delete(oldest);
  return world;
}
