/**
 * A conversation as chat templates know it: the shape of OpenAI's messages, arguments as objects. Invariant: what a message does
 * not have is left out, never null or empty, so no template prints a word for it or takes an empty list for calls.
 */
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage, RenderOptions } from "@rolldeck/contracts/ports/tokenizer";

export interface TemplateSettings {
  /** null = the template's own default. */
  readonly thinking: boolean | null;
  /** Texts of the model's own special tokens. */
  readonly tokens: Readonly<Record<string, string>>;
}

/** @param guarded applied to every string of the conversation, keys of arguments included */
export function templateVariables(
  messages: readonly ChatMessage[],
  { generationPrompt, tools = [], ...options }: RenderOptions,
  { tokens, ...settings }: TemplateSettings,
  guarded: (text: string) => string,
): Record<string, unknown> {
  const thinking = options.thinking === undefined ? settings.thinking : options.thinking;
  return {
    ...tokens,
    messages: messages.map((message) => mapStrings(messageVariables(message), guarded)),
    // Python always defines these two.
    tools: tools.length === 0 ? null : tools.map((tool) => mapStrings(toolVariables(tool), guarded)),
    documents: null,
    add_generation_prompt: generationPrompt,
    // Families call the switch by one of two names.
    ...(thinking === null ? {} : { enable_thinking: thinking, thinking }),
  };
}

function messageVariables({ role, content, reasoning, toolCalls, toolCallId, name }: ChatMessage) {
  const calls = toolCalls?.map(({ id, name: tool, arguments: args }) => ({
    id,
    type: "function",
    function: { name: tool, arguments: args },
  }));
  return {
    // The same words under both names that families read, as Python's `transformers` gives them.
    ...(reasoning ? { thinking: reasoning } : {}),
    role,
    content: content ?? "",
    ...(reasoning ? { reasoning_content: reasoning } : {}),
    ...(calls && calls.length > 0 ? { tool_calls: calls } : {}),
    ...(toolCallId ? { tool_call_id: toolCallId } : {}),
    ...(name ? { name } : {}),
  };
}

const toolVariables = ({ name, description, parameters }: ToolSpec) => ({
  type: "function",
  function: { name, description, parameters },
});

function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), mapStrings(item, change)]));
}
