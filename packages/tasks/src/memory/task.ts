/**
 * Questions about texts that are longer than the context: the text is read part by part, and nothing stays of a part but what
 * the agent writes into its memory (after MemAgent). Each part is a context of its own, so each is a training row.
 */
import { InputError } from "@rolldeck/contracts/errors";
import type { Task, TaskInstance, Verdict } from "@rolldeck/contracts/ports/task";
import { MemoryState, memoryMessages } from "@rolldeck/tools/memory-messages";
import type { ToolName } from "@rolldeck/tools/registry";
import { z } from "zod";
import { instanceState } from "../instance-state.ts";
import { parseOptions } from "../parse-options.ts";
import { type Dataset, openDataset } from "../rows/open-dataset.ts";
import { rowInstance } from "../rows/row-instance.ts";
import { MemoryRow } from "./row.ts";
import { splitText } from "./split-text.ts";
import { memoryVerifiers, verifyMemory } from "./verify.ts";

const Options = z.strictObject({
  maxChunkTokens: z.int().min(16).max(1_000_000).default(4_000).describe("Tokens of one part at most, by estimate"),
  bytesPerToken: z
    .number()
    .min(1)
    .max(16)
    .default(3)
    .describe("The estimate: prose has four or more, so that parts stay below; a byte-level tokenizer has 1"),
  heldOutEvery: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(10)
    .describe("Of a single file: every n-th row is held out; 0 = none"),
  verifier: z
    .enum(memoryVerifiers)
    .default("exact")
    .describe("exact: normalised match; judge: a language model's word"),
});
type Options = z.output<typeof Options>;

/** What an instance's state holds besides what the tool reads. */
const State = MemoryState.extend({ answers: z.array(z.string()).min(1), verifier: z.enum(memoryVerifiers) });
type State = z.output<typeof State>;

const needed = "memory needs a data set: JSONL rows of question, documents or context, and answers";

const unopened = {
  name: "memory",
  description: "Answer a question about a text of any length, read part by part, with only a memory that is rewritten.",
  sandbox: "none",
  tools: ["next_with_summary", "finish"] satisfies ToolName[],
  // 112k tokens in parts of 4k by a careful estimate, and an answer.
  defaults: { maxTurns: 64, maxContextTokens: 16_384, callPolicy: "first" },
  size: () => 0,
  instance: () => {
    throw new RangeError(needed);
  },
  messages: (instance) => memoryMessages(stateOf(instance), 0, ""),
  verify: async (instance, rollout, scene): Promise<Verdict> => verifyMemory(stateOf(instance), rollout, scene),
} satisfies Task;

export const memory = {
  ...unopened,
  open: async ({ dataset, options }) => {
    const parsed = parseOptions(Options, options);
    if (dataset === null) throw new InputError([{ path: "dataset", message: needed }]);
    return overRows(await openDataset(dataset, MemoryRow, parsed.heldOutEvery), parsed);
  },
} satisfies Task;

function overRows(rows: Dataset<MemoryRow>, options: Options): Task {
  return {
    ...unopened,
    ...(options.verifier === "judge" ? { asksJudge: "options.verifier" } : {}),
    size: (split) => rows.size(split),
    instance: (split, index) => rowInstance(rows, { split, index }, (row) => readState(row, options)),
  };
}

const readState = ({ question, text, answers }: MemoryRow, options: Options): State => ({
  question,
  chunks: splitText(text, Math.floor(options.maxChunkTokens * options.bytesPerToken)),
  style: "full",
  answers,
  verifier: options.verifier,
});

const stateOf = (instance: TaskInstance): State => instanceState(State, instance, "no memory row");
