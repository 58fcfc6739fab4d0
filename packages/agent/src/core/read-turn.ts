/** A sampled turn as calls, or as what the model must be told about it. */
import type { ParsedTurn } from "@rolldeck/contracts/ports/dialect";
import type { JsonObject, TurnRecord } from "@rolldeck/contracts/segments";
import { malformedCall, noCall, otherFormat } from "./feedback.ts";
import { looksLikeCall } from "./looks-like-call.ts";
import { sampledText } from "./render-conversation.ts";
import type { RolloutSpec } from "./rollout.ts";

/** `parseError` is the message to the model; null when every call could be read. Without tools the text is the answer. */
export function readTurn(spec: RolloutSpec, tokens: readonly number[]): Pick<TurnRecord, "calls" | "parseError"> {
  if (spec.tools.length === 0) return { calls: [], parseError: null };
  const text = sampledText(spec.tokenizer, tokens);
  const parsed = spec.dialect.parse(text, spec.tools);
  return { calls: parsed.calls, parseError: messageFor(spec, parsed, text) };
}

function messageFor(spec: RolloutSpec, { calls, error }: ParsedTurn, text: string): string | null {
  if (error !== null) return malformedCall(error, exampleCall(spec));
  if (calls.length > 0) return null;
  if (looksLikeCall(text)) return otherFormat(spec.dialect.name, exampleCall(spec));
  return noCall(spec.tools, exampleCall(spec));
}

/** What the policy answered in a run without tools. */
export const readAnswer = (spec: RolloutSpec, tokens: readonly number[]): string =>
  spec.dialect.parse(sampledText(spec.tokenizer, tokens), []).content;

/** A call of the first tool with its required arguments, as the dialect writes it. */
function exampleCall({ dialect, tools }: RolloutSpec): string {
  const [tool] = tools;
  if (tool === undefined) return "";
  const { required } = tool.parameters;
  const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
  const args: JsonObject = Object.fromEntries(names.map((name) => [name, "..."]));
  return dialect.renderCalls([{ name: tool.name, arguments: args }]);
}
