/**
 * What follows a sampled turn: its results as observations, then what the loop has to say (feedback, hints), each part a
 * segment of its own. Invariants: all of it comes from one rendering, so the template's glue is right; parts are split only
 * where the rendering of the first ones is a token prefix of the whole, so every token keeps its place whatever the split.
 */
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { SegmentOrigin } from "@rolldeck/contracts/segments";
import { hintTexts } from "./hints/registry.ts";
import { exampleCall } from "./read-turn.ts";
import { observationTokens } from "./render-conversation.ts";
import type { RolloutSpec } from "./rollout.ts";
import type { Thread } from "./thread.ts";
import { resultsInOrder } from "./trajectory.ts";

export interface AnswerPart {
  readonly origin: SegmentOrigin;
  readonly tokens: readonly number[];
}
export interface Answer {
  readonly parts: readonly AnswerPart[];
  /** What the parts say, for servers that take no tokens. */
  readonly messages: readonly ChatMessage[];
}

/** The answer to the thread's newest turn, whose calls have all ended. */
export function answerTurn(spec: RolloutSpec, thread: Thread): Answer {
  const { results, said } = answerMessages(spec, thread);
  const { tokenizer } = spec;
  const names = spec.agent.hints ?? spec.defaults?.hints ?? [];
  if (names.length === 0 && said.length === 0) return whole("observation", tokenizer, results);
  const observed = results.length === 0 ? [] : observationTokens(tokenizer, results, false);
  const hints = hintsFor(spec, thread, observed.length).map(user);
  if (results.length === 0) return splitHints(tokenizer, [], said, hints, observed);
  if (said.length + hints.length === 0) return whole("observation", tokenizer, results);
  return splitHints(tokenizer, results, said, hints, observed);
}

const user = (content: string): ChatMessage => ({ role: "user", content });

const whole = (origin: SegmentOrigin, tokenizer: Tokenizer, messages: readonly ChatMessage[]): Answer => ({
  parts: [{ origin, tokens: observationTokens(tokenizer, messages) }],
  messages,
});

/** What the newest turn's answer says, hints included. */
export function messagesOf(spec: RolloutSpec, thread: Thread, hints: readonly string[]): ChatMessage[] {
  const { results, said } = answerMessages(spec, thread);
  return [...results, ...said, ...hints.map(user)];
}

/** Messages of the newest turn's results, and of what could not be read. */
function answerMessages({ dialect }: RolloutSpec, { last }: Thread) {
  if (last === null) return { results: [], said: [] };
  const given = resultsInOrder(last);
  const results = last.calls.map(
    (call, place): ChatMessage => ({
      role: dialect.resultRole,
      content: dialect.renderResult(call, given[place]?.output ?? ""),
      ...(dialect.resultRole === "tool" ? { toolCallId: toolCallId(last.turn, call.index), name: call.name } : {}),
    }),
  );
  return { results, said: last.parseError === null ? [] : [user(last.parseError)] };
}

/** Nine letters and digits, as the strictest family asks for; the same for every worker. */
export const toolCallId = (turn: number, index: number): string =>
  `c${String(turn % 100_000).padStart(5, "0")}${String(index % 1000).padStart(3, "0")}`;

/** @param observed tokens of the results that will follow the turn */
export function hintsFor(spec: RolloutSpec, thread: Thread, observed: number): string[] {
  const { last, plan } = thread;
  if (last === null) return [];
  const results = resultsInOrder(last);
  return hintTexts(spec.agent.hints ?? spec.defaults?.hints ?? [], {
    turns: thread.turns,
    maxTurns: plan.maxTurns,
    contextTokens: last.promptTokens + last.sampledTokens + observed,
    maxContextTokens: spec.agent.maxContextTokens,
    earlyStepThreshold: spec.agent.earlyStepThreshold,
    calls: last.calls.map((call, place) => ({ ...call, error: results[place]?.error ?? null })),
    unreadable: last.stopReason === "stop" && last.parseError !== null,
    failures: thread.failures,
    toolNames: plan.tools.map(({ name }) => name),
    exampleCall: exampleCall(spec, plan.tools),
  });
}

/**
 * Results, then what must be said, then hints. Feedback always reaches the model; hints that the template can't show as
 * messages of their own are left out, because they could not be told from observations afterwards.
 */
function splitHints(
  tokenizer: Tokenizer,
  results: readonly ChatMessage[],
  said: readonly ChatMessage[],
  hints: readonly ChatMessage[],
  observed: readonly number[],
): Answer {
  const each = split(tokenizer, results, [...said, ...hints], observed);
  if (each !== null) return each;
  // Templates that want users and assistants in turn take one message where they refuse several.
  const texts = [...said, ...hints].map(({ content }) => content);
  const joined = texts.length > 1 ? split(tokenizer, results, [user(texts.join("\n\n"))], observed) : null;
  if (joined !== null) return joined;
  if (hints.length > 0 && said.length + results.length > 0) return splitHints(tokenizer, results, said, [], observed);
  return inLastResult(tokenizer, results, said);
}

/** The last resort for feedback: at the end of the last result, as part of the observation. */
function inLastResult(tokenizer: Tokenizer, results: readonly ChatMessage[], said: readonly ChatMessage[]): Answer {
  const last = results.at(-1);
  if (last === undefined) return whole("hint", tokenizer, said);
  const content = [last.content, ...said.map((message) => message.content)].join("\n\n");
  return whole("observation", tokenizer, [...results.slice(0, -1), { ...last, content }]);
}

/** One segment for the results and one for each message after them; null where the template does not allow it. */
function split(
  tokenizer: Tokenizer,
  results: readonly ChatMessage[],
  after: readonly ChatMessage[],
  observed: readonly number[],
): Answer | null {
  const messages = [...results, ...after];
  const rendered = after.map((_, place) => {
    const shown = messages.slice(0, results.length + place + 1);
    return tryRender(tokenizer, shown, place === after.length - 1);
  });
  const parts: AnswerPart[] = results.length === 0 ? [] : [{ origin: "observation", tokens: observed }];
  let before = observed;
  for (const tokens of rendered) {
    if (tokens === null || !startsWith(tokens, before)) return null;
    parts.push({ origin: "hint", tokens: tokens.slice(before.length) });
    before = tokens;
  }
  return { parts, messages };
}

/** null where the template refuses this order of messages: the caller tells the model in another way. */
function tryRender(tokenizer: Tokenizer, messages: readonly ChatMessage[], generationPrompt: boolean): number[] | null {
  try {
    return observationTokens(tokenizer, messages, generationPrompt);
  } catch {
    return null;
  }
}

const startsWith = (tokens: readonly number[], prefix: readonly number[]): boolean =>
  prefix.length <= tokens.length && prefix.every((token, place) => token === tokens[place]);
