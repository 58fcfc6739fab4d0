/**
 * Conversations for the warm start. They teach the format and how to follow a key, and leave something to learn: only one in
 * five goes on to the digit, the others stop early and answer the last symbol they saw. Answers are never made up: a policy
 * warm-started on guesses learns to guess without tools.
 */
import type { Demonstration } from "@rolldeck/contracts/ports/task";
import { type Random, seededRandom } from "../random.ts";
import { chainOf, keyChainState } from "./instances.ts";
import { keyChainMessages } from "./messages.ts";

const completeEvery = 5;

/** Deterministic in `seed`, from training chains only. The first n of a longer list are the list of n. */
export function keyChainDemonstrations(seed: number, count: number): Demonstration[] {
  const random = seededRandom(`key-chain demonstrations ${seed}`);
  return Array.from({ length: count }, (_, position) => {
    const state = keyChainState("train", random.integer(0, 2 ** 31 - 1));
    const lookups = position % completeEvery === 0 ? state.lookups : stopEarly(random, state.lookups);
    return demonstrate(chainOf(state), lookups);
  });
}

/**
 * A coin decides: right after the first lookup, or anywhere before the digit. The policy sharpens what it imitates when it
 * samples below temperature 1; with later stops too many of its first rollouts would reach the digit.
 */
const stopEarly = (random: Random, lookups: number): number =>
  random.next() < 0.5 ? 1 : random.integer(1, lookups - 1);

function demonstrate(chain: string, lookups: number): Demonstration {
  const seen = [...chain].slice(0, lookups + 1);
  const steps = seen.slice(0, -1).map((key, at) => ({
    calls: [{ name: "get", arguments: { k: key } }],
    outputs: [seen[at + 1] ?? ""],
  }));
  const answer = { calls: [{ name: "finish", arguments: { answer: seen.at(-1) ?? "" } }], outputs: [] };
  return { messages: keyChainMessages(chain.charAt(0)), turns: [...steps, answer] };
}
