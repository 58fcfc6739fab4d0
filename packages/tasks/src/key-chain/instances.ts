/**
 * Instances without end. A table maps single lower-case letters to the next key or, at a chain's end, to a digit; one chain
 * is asked for, the others are distractors.
 *
 * Invariants:
 * - The chain asked for needs 2–4 lookups, ends in a digit and visits no key twice.
 * - Every distractor is a chain of its own over other keys, so no shortcut through the table leads to the answer.
 * - The splits are disjoint: which split a chain belongs to is read off the chain itself, and only its own split draws it.
 */
import type { Split, TaskInstance } from "@rolldeck/contracts/ports/task";
import { z } from "zod";
import { hashText, type Random, seededRandom } from "../random.ts";

export const minLookups = 2;
export const maxLookups = 4;
const distractors = 2;
const letters = [..."abcdefghijklmnopqrstuvwxyz"];

export const KeyChainState = z.object({
  /** First key: the one the model is asked to find. */
  start: z.string().regex(/^[a-z]$/),
  /** The digit at the end of the chain. */
  answer: z.string().regex(/^[0-9]$/),
  /** Lookups from `start` to `answer` without a detour. */
  lookups: z.int().min(minLookups).max(maxLookups),
  table: z.record(z.string(), z.string()),
});
export type KeyChainState = z.infer<typeof KeyChainState>;

/** Keys in the order of their lookups, then the digit: "aq7". */
export type Chain = string;

export function keyChainInstance(split: Split, index: number): TaskInstance {
  if (!Number.isSafeInteger(index) || index < 0)
    throw new RangeError(`instance index ${index} is not a whole number from 0`);
  return { instanceId: `${split}-${index}`, split, index, state: { ...keyChainState(split, index) } };
}

/** Deterministic in (split, index). */
export function keyChainState(split: Split, index: number): KeyChainState {
  const random = seededRandom(`key-chain ${split} ${index}`);
  const asked = drawOwnChain(random, split);
  const others = drawDistractors(random, [...asked].slice(0, -1));
  const links = [asked, ...others].flatMap((chain) => linksOf(chain));
  return {
    start: asked.charAt(0),
    answer: asked.slice(-1),
    lookups: asked.length - 1,
    table: Object.fromEntries(random.shuffled(links)),
  };
}

/** The one split that may ask for this chain: one chain in four is held out. */
export const splitOf = (chain: Chain): Split => (hashText(`split ${chain}`) % 4 === 0 ? "evaluate" : "train");

/** The chain that `state` asks for, read by following the table. */
export function chainOf(state: KeyChainState): Chain {
  let chain = state.start;
  for (let lookup = 0; lookup < state.lookups; lookup++) chain += state.table[chain.slice(-1)] ?? "";
  return chain;
}

function drawOwnChain(random: Random, split: Split): Chain {
  // A quarter or more of all chains belong to either split, so this ends.
  for (;;) {
    const chain = drawChain(random, letters);
    if (splitOf(chain) === split) return chain;
  }
}

function drawChain(random: Random, keys: readonly string[]): Chain {
  const lookups = random.integer(minLookups, maxLookups);
  return random.shuffled(keys).slice(0, lookups).join("") + String(random.integer(0, 9));
}

function drawDistractors(random: Random, taken: readonly string[]): Chain[] {
  const chains: Chain[] = [];
  for (let n = 0; n < distractors; n++) {
    const used = [...taken, ...chains.join("")];
    chains.push(
      drawChain(
        random,
        letters.filter((letter) => !used.includes(letter)),
      ),
    );
  }
  return chains;
}

/** "aq7" → [["a", "q"], ["q", "7"]]. */
const linksOf = (chain: Chain): [string, string][] =>
  [...chain].slice(0, -1).map((key, at) => [key, chain.charAt(at + 1)]);
