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

/**
 * What follows a sampled turn: everything the template puts between the assistant's end token and the next sample, the glue
 * included. It is the tail of a tiny conversation, cut after the end token of its assistant turn.
 */
export function observationTokens(tokenizer: Tokenizer, messages: readonly ChatMessage[]): number[] {
  const isStop = (token: number) => tokenizer.stopTokens.includes(token);
  const head = tokenizer.render(before, { generationPrompt: false });
  const whole = tokenizer.render([...before, ...messages], { generationPrompt: true });
  const ends = head.filter(isStop).length;
  // A template that closes a turn only with the next role mark has nothing to cut after but the length.
  if (ends === 0) return whole.slice(head.length);
  let seen = 0;
  const cut = whole.findIndex((token) => {
    if (isStop(token)) seen += 1;
    return seen === ends;
  });
  return whole.slice(cut + 1);
}

/** The text the policy wrote, without the end token. */
export function sampledText(tokenizer: Tokenizer, tokens: readonly number[]): string {
  const last = tokens.at(-1);
  const ended = last !== undefined && tokenizer.stopTokens.includes(last);
  return tokenizer.decode(ended ? tokens.slice(0, -1) : tokens);
}
