/**
 * Puts the deltas of a chat-completions stream together, and reads whole answers; both give the same turn for the same
 * answer, however the stream was cut.
 *
 * Servers differ in how a piece names its call. In this order:
 * 1. `index` names it, unless the piece brings another id than that call has: some servers send 0 for every call.
 * 2. Without `index` a known id names it; an unknown one opens a new call, unless the last call still waits for its id.
 * 3. Without both, a piece belongs to the last call, unless it brings a name when that call's arguments have begun.
 * A name is put together from its pieces until the arguments begin. A piece that equals the whole name so far is taken for a
 * repetition, unless it is no tool's name but its double begins one. Arguments are never looked into.
 */
import { z } from "zod";
import { type OpenAiAnswer, type OpenAiCall, withOwnIds } from "./openai-turn.ts";

const Part = z.looseObject({ type: z.string(), text: z.string().nullish(), thinking: z.json().optional() });
const Text = z.union([z.string(), z.array(z.union([z.string(), Part]))]).nullish();
/** Arguments are text; the few servers that send the object itself mean its JSON. */
const Arguments = z.union([z.string(), z.record(z.string(), z.json())]).nullish();
const CallPiece = z.looseObject({
  index: z.int().min(0).nullish(),
  id: z.string().nullish(),
  function: z.looseObject({ name: z.string().nullish(), arguments: Arguments }).nullish(),
});
/** A `delta` or a `message`: what is read of it. `reasoning_content` and `reasoning` are two servers' names for one field. */
export const OpenAiMessage = z.looseObject({
  content: Text,
  /** What a server says instead of content. */
  refusal: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  tool_calls: z.array(CallPiece).nullish(),
});
export type OpenAiMessage = z.infer<typeof OpenAiMessage>;
type CallPiece = z.infer<typeof CallPiece>;

interface Slot {
  readonly index: number | null;
  id: string;
  name: string;
  arguments: string;
}

export class OpenAiStream {
  private content = "";
  private reasoning = "";
  private readonly slots: Slot[] = [];

  /** @param toolNames the request's tools; they settle whether a repeated piece of a name belongs to it */
  constructor(private readonly toolNames: ReadonlySet<string> = new Set()) {}

  /** One `choices[0].delta`. */
  push(delta: OpenAiMessage): void {
    const text = textOf(delta.content);
    this.content += text.content + (delta.refusal ?? "");
    this.reasoning += (delta.reasoning_content ?? delta.reasoning ?? "") + text.reasoning;
    for (const piece of delta.tool_calls ?? []) this.addTo(this.slotOf(piece), piece);
  }

  answer(): OpenAiAnswer {
    return { content: this.content, reasoning: this.reasoning, toolCalls: withOwnIds(inOrder(this.slots)) };
  }

  private slotOf(piece: CallPiece): Slot {
    const index = piece.index ?? null;
    const id = piece.id ?? "";
    const known = index === null ? this.slotWithoutIndex(id, piece.function?.name ?? "") : this.slotAt(index, id);
    if (known !== undefined) return known;
    const slot: Slot = { index, id: "", name: "", arguments: "" };
    this.slots.push(slot);
    return slot;
  }

  private slotAt(index: number, id: string): Slot | undefined {
    const same = this.slots.filter((slot) => slot.index === index);
    if (id === "") return same.at(-1);
    return same.find((slot) => slot.id === id) ?? same.find((slot) => slot.id === "");
  }

  private slotWithoutIndex(id: string, name: string): Slot | undefined {
    const last = this.slots.at(-1);
    if (id === "") return name !== "" && last?.arguments ? undefined : last;
    const known = this.slots.find((slot) => slot.id === id);
    if (known !== undefined) return known;
    return last?.id === "" && (name === "" || last.arguments === "") ? last : undefined;
  }

  private addTo(slot: Slot, piece: CallPiece): void {
    if (slot.id === "") slot.id = piece.id ?? "";
    const name = piece.function?.name ?? "";
    if (slot.arguments === "" && !this.repeats(slot.name, name)) slot.name += name;
    slot.arguments += argumentText(piece.function?.arguments);
  }

  private repeats(sofar: string, piece: string): boolean {
    if (sofar !== piece || this.toolNames.has(sofar)) return sofar === piece;
    return ![...this.toolNames].some((name) => name.startsWith(sofar + piece));
  }
}

/** `choices[0].message` of an answer that was not streamed: each element of `tool_calls` is a call of its own. */
export function wholeAnswer(message: OpenAiMessage): OpenAiAnswer {
  const text = textOf(message.content);
  const calls = (message.tool_calls ?? []).map(
    (piece): OpenAiCall => ({
      id: piece.id ?? "",
      name: piece.function?.name ?? "",
      arguments: argumentText(piece.function?.arguments),
    }),
  );
  return {
    content: text.content + (message.refusal ?? ""),
    reasoning: (message.reasoning_content ?? message.reasoning ?? "") + text.reasoning,
    toolCalls: withOwnIds(calls),
  };
}

/** Calls with an index by it, those without in the order they began. */
function inOrder(slots: readonly Slot[]): OpenAiCall[] {
  const sorted = slots.some(({ index }) => index === null)
    ? slots
    : slots.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0));
  return sorted.map(({ id, name, arguments: args }) => ({ id, name, arguments: args }));
}

const argumentText = (args: z.infer<typeof Arguments>): string =>
  typeof args === "string" ? args : args ? JSON.stringify(args) : "";

/** Content may come as a list of parts, thinking among them. */
function textOf(content: z.infer<typeof Text>): { readonly content: string; readonly reasoning: string } {
  if (content === null || content === undefined) return { content: "", reasoning: "" };
  if (typeof content === "string") return { content, reasoning: "" };
  const texts = { content: "", reasoning: "" };
  for (const part of content) {
    if (typeof part === "string") texts.content += part;
    else if (part.type === "thinking") texts.reasoning += thinkingText(part.thinking);
    else texts.content += part.text ?? "";
  }
  return texts;
}

const ThinkingParts = z.array(z.looseObject({ text: z.string() }));
function thinkingText(thinking: z.infer<typeof Part>["thinking"]): string {
  if (typeof thinking === "string") return thinking;
  const parts = ThinkingParts.safeParse(thinking);
  return parts.success ? parts.data.map(({ text }) => text).join("") : "";
}
