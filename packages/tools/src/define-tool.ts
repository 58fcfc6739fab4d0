/**
 * A tool from its argument schema. Invariant: no model output, however wrong, throws here; a call that does not fit the schema
 * is answered with what is wrong and what would be right, and the tool itself never runs.
 */
import type { Tool, ToolContext, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { JsonObject } from "@rolldeck/contracts/segments";
import { z } from "zod";

export interface ToolDefinition<A> {
  readonly name: string;
  readonly description: string;
  /** Unknown arguments are refused unless they are null: some models pass null for every argument they have heard of. */
  readonly arguments: z.ZodObject & z.ZodType<A>;
  readonly idempotent: boolean;
  call(args: A, context: ToolContext): Promise<ToolOutcome>;
}

export function defineTool<A>(definition: ToolDefinition<A>): Tool {
  const { $schema: _dialect, ...parameters } = z.toJSONSchema(definition.arguments);
  return {
    name: definition.name,
    description: definition.description,
    parameters: JsonObject.parse(parameters),
    idempotent: definition.idempotent,
    call: async (args, context) => {
      const known = Object.keys(definition.arguments.shape);
      const given = Object.fromEntries(
        Object.entries(args).filter(([name, value]) => value !== null || known.includes(name)),
      );
      const parsed = definition.arguments.safeParse(given);
      return parsed.success
        ? definition.call(parsed.data, context)
        : badArguments(definition.name, known, parsed.error);
    },
  };
}

function badArguments(name: string, known: readonly string[], error: z.ZodError): ToolOutcome {
  const complaints = error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`);
  const message = `${name} takes ${known.join(", ")}; ${complaints.join("; ")}`;
  return { output: message, error: { code: "bad_arguments", message } };
}
