/**
 * Conversations for the warm start. They teach the format, how to search and what to read in a result, and leave something to
 * learn: asked for a name, three in ten go on to the code, the others stop after the first search and answer the place. One in
 * three asks for a place, whose code one search tells. Answers are never made up: a policy warm-started on guesses learns to guess
 * without searching.
 */
import type { Demonstration } from "@rolldeck/contracts/ports/task";
import { type Corpus, corpusOf } from "@rolldeck/tools/search/corpus";
import { foundText } from "@rolldeck/tools/search/found-text";
import { seededRandom } from "../../random.ts";
import { snippetCharacters, topK } from "./instances.ts";
import { searchSmallMessages } from "./messages.ts";
import { type SearchChain, searchWorld } from "./world.ts";

/** A name's code, a name's place only, or a place's code. */
type Kind = "whole" | "early" | "place";
const repeated = (kind: Kind, times: number): Kind[] => Array.from({ length: times }, () => kind);
const kinds = [...repeated("whole", 3), ...repeated("early", 7), ...repeated("place", 5)];

/** Deterministic in `seed`, from training worlds only. The first n of a longer list are the list of n. */
export function searchSmallDemonstrations(seed: number, count: number): Demonstration[] {
  const random = seededRandom(`search-small demonstrations ${seed}`);
  const demonstrations: Demonstration[] = [];
  while (demonstrations.length < count) {
    // An index is built once for all that come from one world.
    const { chains, documents } = searchWorld("train", random.integer(0, 2 ** 31 - 1));
    const corpus = corpusOf(documents);
    const asked = random.shuffled(chains);
    for (const [at, kind] of random.shuffled(kinds).entries()) {
      const chain = asked[at];
      if (chain !== undefined) demonstrations.push(demonstrate(corpus, chain, kind));
    }
  }
  return demonstrations.slice(0, count);
}

function demonstrate(corpus: Corpus, { name, place, code }: SearchChain, kind: Kind): Demonstration {
  const queries = { whole: [name, place], early: [name], place: [place] }[kind];
  const searches = queries.map((query) => ({
    calls: [{ name: "local_search", arguments: { query } }],
    outputs: [foundText(corpus, query, { topK, snippetCharacters })],
  }));
  const answer = { calls: [{ name: "finish", arguments: { answer: kind === "early" ? place : code } }], outputs: [] };
  return { messages: searchSmallMessages(kind === "place" ? place : name), turns: [...searches, answer] };
}
