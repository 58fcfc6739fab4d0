/** Takes old tool outputs out of the agent's context; what it said itself stays. */
import { z } from "zod";
import { defineTool } from "./define-tool.ts";

export const dropOldObservations = defineTool({
  name: "drop_old_observations",
  description: "Remove old tool outputs from what you see, to make room. Your own words and the newest outputs stay.",
  arguments: z.strictObject({
    keep: z.int().min(0).max(1000).default(3).describe("How many of the newest outputs stay"),
  }),
  idempotent: true,
  call: async ({ keep }) => ({
    output: `outputs older than the newest ${keep} were removed`,
    context: { kind: "drop-observations", keep },
  }),
});
