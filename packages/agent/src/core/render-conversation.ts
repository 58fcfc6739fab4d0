/**
 * The one way from messages to tokens, used while rolling out and for demonstrations alike. Only the first prompt and each
 * new observation are ever encoded; what was sampled is kept as sampled, and earlier turns are never rendered again.
 */
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";

export interface Opening {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolSpec[];
  readonly dialect: Dialect;
  readonly describeTools: boolean;
}

/** Tokens of the first prompt; the tool descriptions join the system message. */
export function firstPrompt(tokenizer: Tokenizer, opening: Opening): number[] {
  return tokenizer.render(openingMessages(opening), { generationPrompt: true });
}

function openingMessages({ messages, tools, dialect, describeTools }: Opening): ChatMessage[] {
  const description = describeTools && tools.length > 0 ? dialect.describeTools(tools) : "";
  if (description === "") return [...messages];
  const [first, ...rest] = messages;
  if (first?.role !== "system") return [{ role: "system", content: description }, ...messages];
  return [{ role: "system", content: `${first.content}\n\n${description}` }, ...rest];
}

/** A conversation before the observation, as short as templates accept. */
const before: readonly ChatMessage[] = [
  { role: "user", content: "x" },
  { role: "assistant", content: "x" },
];

interface Head {
  readonly tokens: number;
  readonly ends: number;
}
/** The same for every turn of every rollout that shares a tokenizer. */
const heads = new WeakMap<Tokenizer, Head>();

function headOf(tokenizer: Tokenizer): Head {
  const known = heads.get(tokenizer);
  if (known !== undefined) return known;
  const tokens = tokenizer.render(before, { generationPrompt: false });
  const head = { tokens: tokens.length, ends: tokens.filter((token) => tokenizer.stopTokens.includes(token)).length };
  heads.set(tokenizer, head);
  return head;
}

/**
 * What follows a sampled turn: everything the template puts between the assistant's end token and the next sample, the glue
 * included. It is the tail of a tiny conversation, cut after the end token of its assistant turn.
 */
export function observationTokens(tokenizer: Tokenizer, messages: readonly ChatMessage[]): number[] {
  const head = headOf(tokenizer);
  const whole = tokenizer.render([...before, ...messages], { generationPrompt: true });
  // A template that closes a turn only with the next role mark has nothing to cut after but the length.
  if (head.ends === 0) return whole.slice(head.tokens);
  let seen = 0;
  const cut = whole.findIndex((token) => {
    if (tokenizer.stopTokens.includes(token)) seen += 1;
    return seen === head.ends;
  });
  return whole.slice(cut + 1);
}

/** The text the policy wrote, without the end token. */
export function sampledText(tokenizer: Tokenizer, tokens: readonly number[]): string {
  const last = tokens.at(-1);
  const ended = last !== undefined && tokenizer.stopTokens.includes(last);
  return tokenizer.decode(ended ? tokens.slice(0, -1) : tokens);
}
