/**
 * A tool from its argument schema. Invariant: no model output, however wrong, throws here; a call that does not fit the schema
 * is answered with what is wrong and what would be right, and the tool itself never runs.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Delegation, Tool, ToolContext, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { JsonObject } from "@rolldeck/contracts/segments";
import { z } from "zod";

export interface ToolDefinition<A> {
  readonly name: string;
  readonly description: string;
  /** Unknown arguments are refused unless they are null: some models pass null for every argument they have heard of. */
  readonly arguments: z.ZodObject & z.ZodType<A>;
  readonly idempotent: boolean;
  call(args: A, context: ToolContext): Promise<ToolOutcome>;
  /** See the port; the tool is then a sub-agent's. */
  delegate?(args: A, context: Pick<ToolContext, "instance" | "agent">): Delegation;
}

/** `delegate` of the tool it makes throws BoundaryError("tool", "bad_arguments") where `call` would answer with that error. */
export function defineTool<A>(definition: ToolDefinition<A>): Tool {
  // What the model may leave out is not required, so the schema is that of the input.
  const { $schema: _dialect, ...parameters } = z.toJSONSchema(definition.arguments, { io: "input" });
  const read = (args: JsonObject) => {
    const known = Object.keys(definition.arguments.shape);
    const given = Object.fromEntries(
      Object.entries(args).filter(([name, value]) => value !== null || known.includes(name)),
    );
    const parsed = definition.arguments.safeParse(given);
    return parsed.success ? { args: parsed.data } : { refusal: badArguments(definition.name, known, parsed.error) };
  };
  const { delegate } = definition;
  return {
    name: definition.name,
    description: definition.description,
    parameters: JsonObject.parse(parameters),
    idempotent: definition.idempotent,
    call: async (args, context) => {
      const { args: parsed, refusal } = read(args);
      return refusal ?? definition.call(parsed, context);
    },
    ...(delegate && {
      delegate: (args: JsonObject, context: Pick<ToolContext, "instance" | "agent">) => {
        const { args: parsed, refusal } = read(args);
        if (refusal) throw new BoundaryError("tool", "bad_arguments", refusal.output);
        return delegate(parsed, context);
      },
    }),
  };
}

function badArguments(name: string, known: readonly string[], error: z.ZodError): ToolOutcome {
  const complaints = error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`);
  const message = `${name} takes ${known.join(", ")}; ${complaints.join("; ")}`;
  return { output: message, error: { code: "bad_arguments", message } };
}
