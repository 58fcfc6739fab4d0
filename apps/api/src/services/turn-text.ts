/** Turns as people read them: text made of tokens, long texts cut at a character, one answer bounded in bytes. Pure. */
import { sampledText } from "@rolldeck/agent/core/render-conversation";
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import type { Dialect } from "@rolldeck/contracts/ports/dialect";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { JsonObject } from "@rolldeck/contracts/segments";
import type { StoredTurn } from "@rolldeck/db/reads/read-turns";

export const shownCharacters = { sampled: 20_000, added: 8_000, output: 8_000, argument: 8_000 };
/** Characters of text in one answer; with JSON around it stays below a megabyte. */
const pageCharacters = 600_000;

/** Cuts between characters, never inside one. */
export function cutText(text: string, limit: number): { text: string; cutCharacters: number } {
  if (text.length <= limit) return { text, cutCharacters: 0 };
  const insidePair = /[\ud800-\udbff]/u.test(text.charAt(limit - 1)) && /[\udc00-\udfff]/u.test(text.charAt(limit));
  const end = insidePair ? limit - 1 : limit;
  return { text: text.slice(0, end), cutCharacters: text.length - end };
}

/** What makes text of a run's tokens. */
export interface TurnReader {
  readonly tokenizer: Tokenizer;
  /** Null: this server does not know the run's dialect (any more); thinking then stays inside the text. */
  readonly dialect: Dialect | null;
}

export function turnView(turn: StoredTurn, { tokenizer, dialect }: TurnReader): TurnView {
  const { sampled, added, calls, ...facts } = turn;
  return {
    ...facts,
    ...thinkingApart(sampled.tokens, tokenizer, dialect),
    added: added.map(({ origin, tokens }) => ({
      origin,
      preview: cutText(tokenizer.decode(tokens), shownCharacters.added),
      tokens: tokens.length,
    })),
    sampled: cutText(tokenizer.decode(sampled.tokens), shownCharacters.sampled),
    meanLogprob: mean(sampled.logprobs ?? []),
    calls: calls.map((call) => ({
      ...call,
      arguments: cutArguments(call.arguments),
      output: call.output === null ? null : cutText(call.output, shownCharacters.output),
    })),
  };
}

/** Thinking and the rest, by the rules that the loop read the turn with; nulls where there was no thinking. */
function thinkingApart(
  tokens: readonly number[],
  tokenizer: Tokenizer,
  dialect: Dialect | null,
): Pick<TurnView, "reasoning" | "content"> {
  const parsed = dialect?.parse(sampledText(tokenizer, tokens), []);
  if (!parsed || parsed.reasoning === "") return { reasoning: null, content: null };
  return {
    reasoning: cutText(parsed.reasoning, shownCharacters.sampled),
    content: cutText(parsed.content, shownCharacters.sampled),
  };
}

/** As many turns as fit one answer, at least one. */
export function fitAnswer(turns: readonly TurnView[]): TurnView[] {
  let characters = 0;
  const fitting = turns.filter((turn) => {
    characters += JSON.stringify(turn).length;
    return characters <= pageCharacters;
  });
  return fitting.length > 0 ? fitting : turns.slice(0, 1);
}

function mean(logprobs: readonly (number | null)[]): number | null {
  const known = logprobs.filter((logprob) => logprob !== null);
  return known.length === 0 ? null : known.reduce((sum, logprob) => sum + logprob, 0) / known.length;
}

/** Long strings inside arguments end with how much is missing; the stored call keeps all of it. */
function cutArguments(args: JsonObject): JsonObject {
  if (JSON.stringify(args).length <= shownCharacters.argument) return args;
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      const cut = cutText(text, shownCharacters.argument);
      if (cut.cutCharacters === 0) return [key, value];
      return [key, `${cut.text}… (${cut.cutCharacters} characters more)`];
    }),
  );
}
