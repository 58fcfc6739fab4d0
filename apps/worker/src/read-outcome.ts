/**
 * What a tool gave back, checked: tools may be an operator's own code, so their types are a claim. Bytes become text; anything
 * else that is no outcome is a tool error that says what came instead.
 */
import { decodeOutput } from "@rolldeck/agent/core/decode-output";
import type { ContextChange, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { JsonObject } from "@rolldeck/contracts/segments";
import { z } from "zod";

const Message = z.object({
  role: z.enum(["system", "user", "assistant", "tool"]),
  content: z.string(),
  reasoning: z.string().optional(),
  toolCalls: z.array(z.object({ id: z.string(), name: z.string(), arguments: JsonObject })).optional(),
  toolCallId: z.string().optional(),
  name: z.string().optional(),
});
const Change = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("restart"), messages: z.array(Message).min(1) }),
  z.object({ kind: z.literal("summary"), text: z.string(), keepTurns: z.int().min(0) }),
  z.object({ kind: z.literal("drop-observations"), keep: z.int().min(0) }),
]) satisfies z.ZodType<ContextChange>;

const Outcome = z.object({
  output: z.union([z.string(), z.instanceof(Uint8Array).transform(decodeOutput)], "output must be a text"),
  wholeBytes: z.int().min(0).optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  finalAnswer: z.string().optional(),
  context: Change.optional(),
});

export function readOutcome(value: unknown): ToolOutcome {
  const parsed = Outcome.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue?.path.join(".") ?? "";
  const message = `the tool gave ${kindOf(value)}${where === "" ? "" : `; ${where}: ${issue?.message}`}`;
  return { output: message, error: { code: "bad_outcome", message } };
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return "nothing back";
  if (typeof value !== "object") return `a ${typeof value} instead of an outcome`;
  return "an outcome that can't be read";
}
