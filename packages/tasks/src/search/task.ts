/**
 * Questions whose answers are found by searching a document collection, in one step or several (after Search-R1). Rows and
 * corpus are files of the operator; the search is local, so that a run needs no network and every rollout sees the same answers.
 */
import { InputError } from "@rolldeck/contracts/errors";
import type { Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { ToolName } from "@rolldeck/tools/registry";
import { checkCorpusFile } from "@rolldeck/tools/search/corpus-file";
import { z } from "zod";
import { instanceState } from "../instance-state.ts";
import { parseOptions } from "../parse-options.ts";
import { type Dataset, openDataset } from "../rows/open-dataset.ts";
import { rowInstance } from "../rows/row-instance.ts";
import { corpusBeside } from "./corpus-beside.ts";
import { searchMessages } from "./messages.ts";
import { SearchRow } from "./row.ts";
import { verifyAnswer } from "./verify-answer.ts";

const Options = z.strictObject({
  corpus: z
    .string()
    .max(300)
    .default("corpus.jsonl")
    .describe("File beside the rows: a JSON object {id, title?, text} a line"),
  topK: z.int().min(1).max(50).default(3).describe("Documents that one search gives"),
  snippetCharacters: z.int().min(50).max(20_000).default(1_000).describe("Of each document; longer ones are cut"),
  heldOutEvery: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(10)
    .describe("Of a single file: every n-th row is held out; 0 = none"),
  toolOff: z.boolean().default(false).describe("Searches find nothing: measures what the policy knows by itself"),
});
type Options = z.output<typeof Options>;

/** What the verifier reads of an instance's state; `search` is the tool's. */
const State = z.object({
  question: z.string(),
  answers: z.array(z.string()).min(1),
  source: z.string().nullable(),
});

const needed = "search needs a data set: JSONL rows of question and golden_answers, with the corpus beside them";

const unopened = {
  name: "search",
  description: "Answer questions by searching a document collection, in one step or several.",
  sandbox: "none",
  tools: ["local_search", "finish"] satisfies ToolName[],
  defaults: { maxTurns: 12, maxContextTokens: 16_384 },
  size: () => 0,
  instance: () => {
    throw new RangeError(needed);
  },
  messages: (instance) => searchMessages(stateOf(instance).question),
  verify: async (instance, rollout) => verifyAnswer(rollout.finalAnswer, stateOf(instance).answers),
} satisfies Task;

export const search = {
  ...unopened,
  open: async ({ dataset, options }) => {
    const parsed = parseOptions(Options, options);
    if (dataset === null) throw new InputError([{ path: "dataset", message: needed }]);
    const corpus = corpusBeside(dataset, parsed.corpus);
    // Read once in full: a bad line is a mistake to tell at launch, not in the middle of a run.
    await checkCorpusFile(corpus);
    return overRows(await openDataset(dataset, SearchRow, parsed.heldOutEvery), corpus, parsed);
  },
} satisfies Task;

function overRows(rows: Dataset<SearchRow>, corpus: string, { toolOff, topK, snippetCharacters }: Options): Task {
  const scope = { corpus: toolOff ? [] : corpus, topK, snippetCharacters };
  return {
    ...unopened,
    size: (split) => rows.size(split),
    instance: (split, index) =>
      rowInstance(rows, { split, index }, ({ question, answers, source }) => ({
        question,
        answers,
        source,
        search: scope,
      })),
  };
}

const stateOf = (instance: TaskInstance) => instanceState(State, instance, "no search row");
