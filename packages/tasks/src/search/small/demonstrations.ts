/**
 * Conversations for the warm start. They teach the format, how to search and where in a result to look, and leave something
 * to learn: three in ten go on to the code, the others stop after the first search and answer the place. Answers are never made
 * up: a policy warm-started on guesses learns to guess without searching.
 */
import type { Demonstration } from "@rolldeck/contracts/ports/task";
import { type Corpus, corpusOf } from "@rolldeck/tools/search/corpus";
import { foundText } from "@rolldeck/tools/search/found-text";
import { seededRandom } from "../../random.ts";
import { snippetCharacters, topK } from "./instances.ts";
import { searchSmallMessages } from "./messages.ts";
import { type SearchChain, searchWorld } from "./world.ts";

const completeOfTen = 3;
/** Chains taken from one world: an index is built once for all of them. */
const perWorld = 10;

/** Deterministic in `seed`, from training worlds only. The first n of a longer list are the list of n. */
export function searchSmallDemonstrations(seed: number, count: number): Demonstration[] {
  const random = seededRandom(`search-small demonstrations ${seed}`);
  const demonstrations: Demonstration[] = [];
  while (demonstrations.length < count) {
    const { chains, documents } = searchWorld("train", random.integer(0, 2 ** 31 - 1));
    const corpus = corpusOf(documents);
    for (const [at, chain] of random.shuffled(chains).slice(0, perWorld).entries()) {
      demonstrations.push(demonstrate(corpus, chain, at < completeOfTen));
    }
  }
  return demonstrations.slice(0, count);
}

function demonstrate(corpus: Corpus, { name, place, code }: SearchChain, complete: boolean): Demonstration {
  const searches = (complete ? [name, place] : [name]).map((query) => ({
    calls: [{ name: "local_search", arguments: { query } }],
    outputs: [foundText(corpus, query, { topK, snippetCharacters })],
  }));
  const answer = { calls: [{ name: "finish", arguments: { answer: complete ? code : place } }], outputs: [] };
  return { messages: searchSmallMessages(name), turns: [...searches, answer] };
}
