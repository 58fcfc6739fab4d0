/** Trades the agent's older turns for its own summary of them. */
import { z } from "zod";
import { defineTool } from "./define-tool.ts";

export const summariseHistory = defineTool({
  name: "summarise_history",
  description: "Replace your earlier turns by a summary, to make room. The task's text and your newest turns stay.",
  arguments: z.strictObject({
    summary: z.string().trim().min(1).describe("What you did, found out and still have to do"),
    keep_turns: z.int().min(0).max(50).default(1).describe("How many of your newest turns stay as they are"),
  }),
  idempotent: true,
  call: async ({ summary, keep_turns: keepTurns }) => ({
    output: keepTurns === 0 ? "earlier turns were replaced" : `turns before the newest ${keepTurns} were replaced`,
    context: { kind: "summary", text: summary, keepTurns },
  }),
});
