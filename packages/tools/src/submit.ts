/** Ends the rollout: what was done in the sandbox is the answer, the message only tells of it. */
import { z } from "zod";
import { defineTool } from "./define-tool.ts";

export const submit = defineTool({
  name: "submit",
  description: "Hand in your work as it is now. This ends the task.",
  arguments: z.strictObject({ message: z.string().describe("What you did, in a few words").optional() }),
  idempotent: true,
  call: async ({ message }) => ({ output: "", finalAnswer: message ?? "submitted" }),
});
