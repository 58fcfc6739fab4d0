/** Ends the rollout with an answer. Every task that wants one lists it. */
import { z } from "zod";
import { defineTool } from "./define-tool.ts";

export const finish = defineTool({
  name: "finish",
  description: "End the task with your answer.",
  arguments: z.strictObject({ answer: z.string().describe("The answer, as text") }),
  idempotent: true,
  call: async ({ answer }) => ({ output: "", finalAnswer: answer }),
});
