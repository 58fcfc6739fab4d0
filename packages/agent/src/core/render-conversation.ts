/**
 * The one way from messages to tokens, used while rolling out and for demonstrations alike. Only the first prompt and each
 * new observation are ever encoded; what was sampled is kept as sampled, and earlier turns are never rendered again. What an
 * observation costs does not grow with the conversation: it is rendered behind the shortest one that a template accepts.
 * Whether a template gives the same tokens in a whole conversation is what io/template-check.ts finds out before a run trains.
 */
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { renderAccepted } from "./render-accepted.ts";
import { describesTools } from "./template-tools.ts";

export interface Opening {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolSpec[];
  readonly dialect: Dialect;
  readonly describeTools: boolean;
}

/**
 * Tokens of the first prompt, and of every restart. Tools are described by the template where it writes them in the run's dialect,
 * else by the dialect's own words, which join the system message.
 */
export function firstPrompt(tokenizer: Tokenizer, opening: Opening): number[] {
  const { messages, tools, dialect, describeTools } = opening;
  if (describeTools && tools.length > 0 && describesTools(tokenizer, dialect))
    return renderAccepted(messages, (form) => tokenizer.render(form, { generationPrompt: true, tools }));
  return renderAccepted(openingMessages(opening), (form) => tokenizer.render(form, { generationPrompt: true }));
}

function openingMessages({ messages, tools, dialect, describeTools }: Opening): ChatMessage[] {
  const description = describeTools && tools.length > 0 ? dialect.describeTools(tools) : "";
  if (description === "") return [...messages];
  const [first, ...rest] = messages;
  if (first?.role !== "system") return [{ role: "system", content: description }, ...messages];
  return [{ role: "system", content: `${first.content}\n\n${description}` }, ...rest];
}

/** What stands before an observation: a question and an answer, with a call before results. Some templates show only the call. */
type Before = (answer: string) => readonly ChatMessage[];
const question: ChatMessage = { role: "user", content: "x" };
const plainBefore: Before = (answer) => [question, { role: "assistant", content: answer }];
const callBefore: Before = (answer) => [
  question,
  { role: "assistant", content: answer, toolCalls: [{ id: "c00000000", name: "x", arguments: { x: answer } }] },
];

/** Stop tokens before the answer's own in a rendering that starts with it; null: the template writes none after an answer. */
interface Place {
  readonly endsBefore: number | null;
}
/** The same for every turn of every rollout that shares a tokenizer. */
const places = new WeakMap<Tokenizer, Map<Before, Place>>();

function placeOf(tokenizer: Tokenizer, before: Before): Place {
  const known = places.get(tokenizer) ?? new Map<Before, Place>();
  places.set(tokenizer, known);
  const place = known.get(before) ?? findPlace(tokenizer, before);
  known.set(before, place);
  return place;
}

/** The answer begins where renderings of two answers part; what follows begins where those of two next messages do. */
function findPlace(tokenizer: Tokenizer, before: Before): Place {
  const render = (answer: string, next: string) =>
    tokenizer.render([...before(answer), { role: "user", content: next }], { generationPrompt: false });
  const tokens = render("x", "x");
  const answerAt = firstDifference(tokens, render("y", "x"));
  const nextAt = firstDifference(tokens, render("x", "y"));
  const isEnd = (token: number) => tokenizer.stopTokens.includes(token);
  const end = tokens.findIndex((token, index) => index >= answerAt && isEnd(token));
  if (end === -1 || end >= nextAt) return { endsBefore: null };
  return { endsBefore: tokens.slice(0, end).filter(isEnd).length };
}

/**
 * What follows a sampled turn: everything the template puts between the assistant's end token and the next sample, the glue
 * included, or only up to the end of the messages. It is the tail of a tiny conversation, cut after the end token of its answer.
 * @throws BoundaryError("infrastructure", "chat_template") when the template takes no such messages after an answer
 */
export function observationTokens(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  generationPrompt = true,
): number[] {
  const after = (before: Before) =>
    renderAccepted(messages, (form) => tailAfter(tokenizer, before, form, generationPrompt));
  if (!messages.some(({ role }) => role === "tool")) return after(plainBefore);
  try {
    return after(callBefore);
  } catch {
    // A template that knows no calls may know results; the second try says what is really wrong.
    return after(plainBefore);
  }
}

function tailAfter(
  tokenizer: Tokenizer,
  before: Before,
  messages: readonly ChatMessage[],
  generationPrompt: boolean,
): number[] {
  const render = (answer: string) => tokenizer.render([...before(answer), ...messages], { generationPrompt });
  const { endsBefore } = placeOf(tokenizer, before);
  const whole = render("x");
  // A template that closes a turn only with the next role mark has nothing to cut after: the tail is what two answers share.
  if (endsBefore === null) return whole.slice(whole.length - commonTail(whole, render("y")));
  let seen = 0;
  const cut = whole.findIndex((token) => {
    if (tokenizer.stopTokens.includes(token)) seen += 1;
    return seen > endsBefore;
  });
  return whole.slice(cut + 1);
}

function firstDifference(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((token, index) => token !== other[index]);
  return at === -1 ? one.length : at;
}

function commonTail(one: readonly number[], other: readonly number[]): number {
  let length = 0;
  while (length < one.length && one.at(-1 - length) === other.at(-1 - length)) length += 1;
  return length;
}

/** The text the policy wrote, without the end token. */
export function sampledText(tokenizer: Tokenizer, tokens: readonly number[]): string {
  const last = tokens.at(-1);
  const ended = last !== undefined && tokenizer.stopTokens.includes(last);
  return tokenizer.decode(ended ? tokens.slice(0, -1) : tokens);
}
