/**
 * Searches the corpus that the task's instance names. It knows nothing but words (BM25): the same query over the same corpus
 * gives the same answer, always, and it needs no server. Nothing found is an answer like any other.
 */
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { defineTool } from "./define-tool.ts";
import type { Corpus } from "./search/corpus.ts";
import { foundText } from "./search/found-text.ts";
import { OpenCorpora } from "./search/open-corpora.ts";
import { textTerms } from "./search/text-terms.ts";

const maxOpenFiles = 2;

/** What an instance's `state` holds for this tool. */
export const SearchScope = z.object({
  search: z.object({
    /** Absolute path of a corpus file, or the documents themselves. */
    corpus: z.union([z.string().min(1), z.custom<readonly unknown[]>((value) => Array.isArray(value))]),
    topK: z.int().min(1).max(50).default(3),
    snippetCharacters: z.int().min(1).max(100_000).default(1_000),
  }),
});

const corpora = new OpenCorpora({ maxOpen: maxOpenFiles });

export const localSearch = defineTool({
  name: "local_search",
  description: "Search a document collection. Gives the best matching documents.",
  arguments: z.strictObject({ query: z.string().describe("What to look for, in a few words") }),
  idempotent: true,
  call: async ({ query }, { instance, signal }) => {
    const scope = SearchScope.safeParse(instance);
    if (!scope.success) {
      throw new BoundaryError("infrastructure", "no_corpus", "local_search needs an instance with a corpus", {
        cause: scope.error,
      });
    }
    const { corpus, topK, snippetCharacters } = scope.data.search;
    if (textTerms(query).length === 0) {
      const message = "the query holds no words";
      return { output: message, error: { code: "empty_query", message } };
    }
    const opened = await open(corpus);
    signal.throwIfAborted();
    return { output: foundText(opened, query, { topK, snippetCharacters }) };
  },
});

/** @throws BoundaryError("infrastructure"): a corpus that can't be read is nothing that the model did. */
async function open(corpus: string | readonly unknown[]): Promise<Corpus> {
  try {
    return typeof corpus === "string" ? await corpora.file(corpus) : corpora.list(corpus);
  } catch (cause) {
    const why = cause instanceof InputError ? cause.message : "it can't be read";
    throw new BoundaryError("infrastructure", "bad_corpus", `the corpus can't be searched: ${why}`, { cause });
  }
}
