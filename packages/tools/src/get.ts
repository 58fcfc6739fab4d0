/**
 * Looks a key up in the instance's table. A missing key is an answer like any other ("?"), not an error: what is not there is
 * something a policy may find out. Names are short because a byte-level policy pays a token for each character.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { defineTool } from "./define-tool.ts";

export const missingValue = "?";

const Lookup = z.object({ table: z.record(z.string(), z.string()) });

export const get = defineTool({
  name: "get",
  description: "Look up the value of a key.",
  arguments: z.strictObject({ k: z.string().describe("The key") }),
  idempotent: true,
  call: async ({ k }, context) => {
    const instance = Lookup.safeParse(context.instance);
    if (!instance.success) {
      throw new BoundaryError("infrastructure", "no_table", "get needs an instance with a table", {
        cause: instance.error,
      });
    }
    const { table } = instance.data;
    return { output: Object.hasOwn(table, k) ? (table[k] ?? missingValue) : missingValue };
  },
});
