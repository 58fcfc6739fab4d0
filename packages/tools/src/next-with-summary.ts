/**
 * The memory agent's step: what it wrote becomes its memory, its history is gone, and the next part of the text is shown. Which
 * part is next follows from the calls it has made, so a rollout that another worker continues goes on at the same part.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { defineTool } from "./define-tool.ts";
import { MemoryState, memoryMessages } from "./memory-messages.ts";

const name = "next_with_summary";

export const nextWithSummary = defineTool({
  name,
  description: "Go on to the next part of the text. Only the summary you give is kept.",
  arguments: z.strictObject({ summary: z.string().describe("All you want to remember; replaces your memory") }),
  idempotent: true,
  call: async ({ summary }, { instance, agent }) => {
    const state = MemoryState.safeParse(instance);
    if (!state.success) {
      throw new BoundaryError("infrastructure", "no_chunks", `${name} needs an instance with a question and chunks`, {
        cause: state.error,
      });
    }
    const { chunks } = state.data;
    const read = 1 + agent.calls.filter((call) => call.name === name && !call.failed).length;
    if (read > chunks.length) {
      const message = `all ${chunks.length} parts are read: call finish with your answer`;
      return { output: message, error: { code: "no_more_parts", message } };
    }
    const output = read === chunks.length ? `end after ${read} parts` : `part ${read + 1} of ${chunks.length}`;
    return { output, context: { kind: "restart", messages: memoryMessages(state.data, read, summary) } };
  },
});
