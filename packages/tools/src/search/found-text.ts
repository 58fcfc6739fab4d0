/** What a search tells the model: a line a document, best first. Pure, so that demonstrations show what the tool would say. */
import type { Corpus, CorpusDocument } from "./corpus.ts";
import { snippet } from "./snippet.ts";
import { textTerms } from "./text-terms.ts";

export const nothingFound = "no results";
/** A longer query is cut: what a model writes must not decide how long a search takes. */
const maxQueryCharacters = 2_000;

export interface FoundTextOptions {
  /** Documents at most. */
  readonly topK: number;
  /** Of each document's text. */
  readonly snippetCharacters: number;
}

export function foundText(corpus: Corpus, query: string, { topK, snippetCharacters }: FoundTextOptions): string {
  const asked = query.slice(0, maxQueryCharacters);
  const words = textTerms(asked);
  const found = corpus.index.search(asked, topK).flatMap(({ position }) => corpus.documents[position] ?? []);
  return found.length === 0
    ? nothingFound
    : found.map((document) => show(document, words, snippetCharacters)).join("\n");
}

function show({ id, title, text }: CorpusDocument, words: readonly string[], characters: number): string {
  const head = title === undefined || title === "" ? `[${id}]` : `[${id}] ${title}:`;
  return `${head} ${snippet(text, words, characters)}`;
}
