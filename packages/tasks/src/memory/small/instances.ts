/**
 * Instances without end. A text is read in parts; each part is a row of pairs, a key and a value (`bxKqt7`). One key has a digit
 * for its value and is asked for; the others, whose values are letters, are there to be read past. A byte-level policy pays a
 * token for each character, so everything is short.
 *
 * Invariants:
 * - The key asked for comes once, and the text has no other digit.
 * - The pair asked for is in neither the first nor the last part: it can't be known at the opening, and it has to be carried.
 * - The splits are disjoint: which split a text belongs to is read off the text itself, and only its own split draws it.
 */
import type { Split, TaskInstance } from "@rolldeck/contracts/ports/task";
import { MemoryState } from "@rolldeck/tools/memory-messages";
import { z } from "zod";
import { hashText, type Random, seededRandom } from "../../random.ts";

const letters = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"];
/** Digits an answer can have: guessing one pays 10 %. */
const digits = 10;

/** At most 2,048 characters in parts of at most 256. */
const maxParts = 8;
const maxPairs = 128;

const Options = z.strictObject({
  minParts: z.int().min(3).max(maxParts).default(3).describe("Parts of the shortest text"),
  maxParts: z.int().min(3).max(maxParts).default(5).describe("Parts of the longest text"),
  pairs: z.int().min(1).max(maxPairs).default(16).describe("Pairs in a part; two characters each"),
  toolOff: z.boolean().default(false).describe("Going on shows nothing: every part after the first is blank"),
});
export const SmallOptions = Options.refine((sizes) => sizes.minParts <= sizes.maxParts, {
  path: ["maxParts"],
  message: "is less than minParts",
});
export type SmallOptions = z.output<typeof SmallOptions>;
export const defaultOptions: SmallOptions = SmallOptions.parse({});

export const SmallState = MemoryState.extend({
  /** The digit asked for. */
  answers: z.tuple([z.string().regex(/^[0-9]$/)]),
  /** The part that holds it, from 0. */
  part: z.int().min(1),
});
export type SmallState = z.output<typeof SmallState>;

export function smallInstance(split: Split, index: number, options: SmallOptions): TaskInstance {
  if (!Number.isSafeInteger(index) || index < 0) {
    throw new RangeError(`instance index ${index} is not a whole number from 0`);
  }
  const state = smallState(split, index, options);
  const shown = options.toolOff ? state.chunks.map((chunk, part) => (part === 0 ? chunk : "")) : state.chunks;
  return { instanceId: `${split}-${index}`, split, index, state: { ...state, chunks: shown } };
}

/** Deterministic in (split, index, options). */
export function smallState(split: Split, index: number, options: SmallOptions): SmallState {
  const random = seededRandom(`memory-small ${split} ${index}`);
  // A quarter or more of all texts belong to either split, so this ends.
  for (;;) {
    const state = drawState(random, options);
    if (splitOf(state) === split) return state;
  }
}

/** The one split that may show this text with this question: one in four is held out. */
export const splitOf = ({ question, chunks }: Pick<SmallState, "question" | "chunks">): Split =>
  hashText(`split ${question} ${chunks.join("|")}`) % 4 === 0 ? "evaluate" : "train";

function drawState(random: Random, { minParts, maxParts, pairs }: SmallOptions): SmallState {
  const letter = () => letters[random.integer(0, letters.length - 1)] ?? "";
  const question = letter();
  const others = letters.filter((each) => each !== question);
  const other = () => others[random.integer(0, others.length - 1)] ?? "";
  const parts = random.integer(minParts, maxParts);
  const chunks = Array.from({ length: parts }, () => Array.from({ length: pairs }, () => other() + letter()));
  const part = random.integer(1, parts - 2);
  const digit = String(random.integer(0, digits - 1));
  chunks[part]?.splice(random.integer(0, pairs - 1), 1, question + digit);
  return { question, chunks: chunks.map((row) => row.join("")), style: "short", answers: [digit], part };
}
