/** The one way to get tokens from a policy: token ids in, token ids and logprobs out. */
import type { TurnNote } from "../segments.ts";
import type { ToolSpec } from "./dialect.ts";
import type { ChatMessage } from "./tokenizer.ts";

/** A prompt that its owner only ever appends to: what was written as text once is not written again. */
export interface Prompt {
  /** Tokens. */
  readonly length: number;
  toArray(): number[];
  /** The JSON array of the ids, as ASCII bytes: `[1,2,3]`. Valid until the owner appends; senders that keep it copy it. */
  json(): Uint8Array;
  /** The conversation, for servers that take no tokens. */
  messages(): readonly ChatMessage[];
}
export interface SampleRequest {
  /** Keeps one rollout on one engine replica, and names the prefix cache entry. */
  readonly affinityKey: string;
  readonly prompt: Prompt;
  /** For servers that take no tokens; token wires ignore it. */
  readonly tools: readonly ToolSpec[];
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** −1 means off. */
  readonly topK: number;
  readonly seed: number;
  /** Token ids at which sampling stops; the stop token is part of the result. */
  readonly stopTokens: readonly number[];
}
export interface SampleResult {
  readonly tokens: readonly number[];
  /** Same length as `tokens`; null where the server hides them: such a turn is never trained. */
  readonly logprobs: readonly number[] | null;
  readonly stopReason: "stop" | "length";
  readonly policyVersion: number;
  readonly cacheHitTokens: number;
  /** What the adapter found odd in the answer (counts that disagree, another prompt); absent = nothing. */
  readonly notes?: readonly TurnNote[];
}
export interface Sampler {
  /** @throws BoundaryError("model-server") with `retryable`; the signal closes the connection and cancels the request. */
  sample(request: SampleRequest, signal: AbortSignal): Promise<SampleResult>;
}

/** A prompt of fixed tokens. @param messages for servers that take no tokens */
export function fixedPrompt(tokens: readonly number[], messages: readonly ChatMessage[] = []): Prompt {
  return {
    length: tokens.length,
    toArray: () => [...tokens],
    json: () => new TextEncoder().encode(JSON.stringify(tokens)),
    messages: () => messages,
  };
}
