/** Room for a thought between calls; nothing happens. */
import { z } from "zod";
import { defineTool } from "./define-tool.ts";

export const think = defineTool({
  name: "think",
  description: "Write down a thought. Nothing else happens.",
  arguments: z.strictObject({ thought: z.string().describe("The thought") }),
  idempotent: true,
  call: async () => ({ output: "noted" }),
});
