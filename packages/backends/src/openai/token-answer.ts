/**
 * From a server's sample to ours. Pure. Ids, logprobs and counts are held against each other on every turn: what disagrees is
 * noted, and ids that are not certain lose their logprobs, so that nothing downstream can train on them.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SampleRequest, SampleResult } from "@rolldeck/contracts/ports/sampler";
import type { TurnNote } from "@rolldeck/contracts/segments";
import type { AnswerPart } from "./token-wires.ts";

/** One sample as a wire told it; `tokens` null: the server hides them. */
export interface TokenAnswer extends AnswerPart {
  /** Does the server say that it saw the very ids that were sent? Null: it does not tell. */
  readonly samePrompt: boolean | null;
  readonly streamed: boolean;
}

/** @throws BoundaryError("model-server") for an answer that is no sample at all */
export function tokenSample(
  answer: TokenAnswer,
  request: SampleRequest,
  policyVersion: number,
  what: string,
): SampleResult {
  const { tokens } = answer;
  if (tokens === null) {
    throw new BoundaryError(
      "model-server",
      "hidden_tokens",
      `${what}: the answer holds no token ids; a server that can't give them is asked as openai-chat`,
    );
  }
  if (tokens.length === 0) throw new BoundaryError("model-server", "unusable_sample", `${what}: no token was sampled`);
  const doubts = [...countDoubts(answer, tokens), ...reasonDoubts(answer.finishReason)];
  const logprobs = certainLogprobs(answer, tokens);
  const incomplete = doubts.some((found) => found.incomplete);
  // Where ids are missing, the last one is not the end.
  const ends = incomplete ? [] : endDoubts(answer, tokens, request);
  const notes = [...doubts, ...logprobs.doubts, ...promptDoubts(answer, request), ...ends];
  return {
    tokens,
    logprobs: incomplete ? null : logprobs.values,
    stopReason: stopReason(answer, tokens, request),
    policyVersion,
    cacheHitTokens: answer.cachedTokens ?? 0,
    ...(notes.length === 0 ? {} : { notes: notes.map(({ kind, message }) => ({ kind, message })) }),
  };
}

interface Doubt extends TurnNote {
  /** The ids are not all that was sampled. */
  readonly incomplete: boolean;
}
const doubt = (kind: TurnNote["kind"], message: string, incomplete = false): Doubt => ({ kind, message, incomplete });

function countDoubts({ completionTokens, streamed }: TokenAnswer, tokens: readonly number[]): Doubt[] {
  if (completionTokens === null || completionTokens === tokens.length) return [];
  const cure = streamed ? "; ask without streaming, or use a newer server" : "";
  const message = `the server counts ${completionTokens} sampled tokens and gave the ids of ${tokens.length}${cure}`;
  return [doubt("usage", message, true)];
}

function certainLogprobs(
  { logprobs }: TokenAnswer,
  tokens: readonly number[],
): { readonly values: readonly number[] | null; readonly doubts: readonly Doubt[] } {
  if (logprobs === null) return { values: null, doubts: [] };
  if (logprobs.length !== tokens.length) {
    return {
      values: null,
      doubts: [doubt("usage", `${tokens.length} token ids came with ${logprobs.length} logprobs`)],
    };
  }
  if (!logprobs.every((value): value is number => value !== null && Number.isFinite(value))) {
    return { values: null, doubts: [doubt("usage", "a sampled token came without a finite logprob")] };
  }
  return { values: logprobs, doubts: [] };
}

function promptDoubts({ promptTokens, samePrompt }: TokenAnswer, { prompt }: SampleRequest): Doubt[] {
  if (promptTokens !== null && promptTokens !== prompt.length) {
    return [doubt("drift", `${prompt.length} prompt tokens were sent and the server counts ${promptTokens}`)];
  }
  return samePrompt === false ? [doubt("drift", "the server saw other prompt ids than were sent")] : [];
}

/** A server may have end tokens of its own; to whoever asked, such a sample has no end. */
function endDoubts({ finishReason }: TokenAnswer, tokens: readonly number[], request: SampleRequest): Doubt[] {
  const last = tokens.at(-1) ?? -1;
  if (isLength(finishReason) || tokens.length >= request.maxTokens || request.stopTokens.includes(last)) return [];
  return [doubt("truncated", `the server stopped after token ${last}, which is no end token of this model's template`)];
}

const knownReasons: ReadonlySet<string> = new Set([
  "stop",
  "length",
  "tool_calls",
  "function_call",
  "eos",
  "max_tokens",
]);
function reasonDoubts(reason: string | null): Doubt[] {
  if (reason !== null && knownReasons.has(reason)) return [];
  return [doubt("usage", `the server ended the sample with reason ${JSON.stringify(reason)}`)];
}

/** Cut by reason, or by count: some servers say "tool_calls" or "stop" of an answer that used up its tokens. */
function stopReason(
  { finishReason }: TokenAnswer,
  tokens: readonly number[],
  request: SampleRequest,
): "stop" | "length" {
  if (isLength(finishReason)) return "length";
  if (tokens.length < request.maxTokens) return "stop";
  return request.stopTokens.includes(tokens.at(-1) ?? -1) ? "stop" : "length";
}

export const isLength = (reason: string | null): boolean => reason === "length" || reason === "max_tokens";
