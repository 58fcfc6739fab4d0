/**
 * A conversation as /v1/chat/completions takes it. Pure. Invariants: no field is ever undefined, no empty list is sent, a tool's
 * empty result is sent as "", and no half of a surrogate pair leaves: strict servers refuse a session for ever after one.
 */
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import type { JsonObject } from "@rolldeck/contracts/segments";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources/chat/completions";
import type { Endpoint } from "./endpoint.ts";

type Style = Pick<Endpoint, "emptyContent" | "reasoningField">;

export const chatMessages = (messages: readonly ChatMessage[], style: Style): ChatCompletionMessageParam[] =>
  messages.map((message) => chatMessage(message, style));

function chatMessage(message: ChatMessage, style: Style): ChatCompletionMessageParam {
  const content = wellFormed(message.content);
  switch (message.role) {
    case "system":
    case "user":
      return { role: message.role, content };
    case "tool":
      return { role: "tool", content, tool_call_id: wellFormed(message.toolCallId ?? "") };
    case "assistant":
      return assistantMessage(message, content, style);
  }
}

function assistantMessage(message: ChatMessage, content: string, style: Style): ChatCompletionMessageParam {
  const calls = (message.toolCalls ?? []).map(({ id, name, arguments: args }) => ({
    id: wellFormed(id),
    type: "function" as const,
    function: { name: wellFormed(name), arguments: wellFormedJson(args) },
  }));
  // Null is for turns that call: an assistant turn with neither content nor calls is refused by strict servers as null.
  const said = content === "" && calls.length > 0 && style.emptyContent === "null" ? null : content;
  const reasoning = wellFormed(message.reasoning ?? "");
  return {
    role: "assistant",
    content: said,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(style.reasoningField === null || reasoning === "" ? {} : { [style.reasoningField]: reasoning }),
  };
}

export const chatTools = (tools: readonly ToolSpec[]): ChatCompletionTool[] =>
  tools.map(({ name, description, parameters }) => ({
    type: "function",
    function: { name, description: wellFormed(description), parameters },
  }));

/** Halves of surrogate pairs become U+FFFD. Text that only spells one, as code and JSON do, is text. */
const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, "\ufffd");

/** JSON.stringify escapes halves of pairs, and nothing else like them: whole pairs stay as they are. */
const wellFormedJson = (value: JsonObject): string =>
  JSON.stringify(value).replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/gi, "$1\ufffd");
