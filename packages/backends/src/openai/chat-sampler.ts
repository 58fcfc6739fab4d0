/**
 * Samples of a server that hides its tokens: the answer's text, encoded with the run's own tokenizer. Such a turn has no logprobs,
 * so it is never trained; launch refuses a training run on it.
 */
import type { SampleRequest, SampleResult, Sampler } from "@rolldeck/contracts/ports/sampler";
import type { TurnNote } from "@rolldeck/contracts/segments";
import type { Wait } from "../resilient/resilient-calls.ts";
import type { ChatCalls, ChatReply } from "./chat-calls.ts";
import { chatMessages, chatTools } from "./chat-messages.ts";
import type { ChatText } from "./chat-text.ts";
import type { Endpoint } from "./endpoint.ts";
import type { PromptCounts } from "./prompt-counts.ts";
import { isLength } from "./token-answer.ts";

export interface ChatSamplerOptions {
  readonly endpoint: Endpoint;
  readonly chat: ChatCalls;
  readonly model: string;
  readonly policyVersion: number;
  readonly chatText: ChatText;
  /** Of all rollouts on this server. */
  readonly counts: PromptCounts;
  /** Of the run's tokenizer. */
  readonly encoder: () => Promise<(text: string) => number[]>;
  readonly onWait?: (wait: Wait) => void;
}

export class ChatSampler implements Sampler {
  readonly #options: ChatSamplerOptions;

  constructor(options: ChatSamplerOptions) {
    this.#options = options;
  }

  async sample(request: SampleRequest, signal: AbortSignal): Promise<SampleResult> {
    const { chat, chatText, encoder, onWait } = this.#options;
    const encode = await encoder();
    const reply = await chat.complete({
      affinityKey: request.affinityKey,
      body: this.#body(request),
      toolNames: new Set(request.tools.map(({ name }) => name)),
      chatText,
      signal,
      onWait,
    });
    return this.#result(reply, encode(reply.text), request);
  }

  #body(request: SampleRequest) {
    const { endpoint, model } = this.#options;
    return {
      model,
      messages: chatMessages(request.prompt.messages(), endpoint),
      ...(request.tools.length === 0 ? {} : { tools: chatTools(request.tools) }),
      [endpoint.maxTokensField]: request.maxTokens,
      temperature: request.temperature,
      top_p: request.topP,
      // Not of OpenAI's own, whose servers refuse it: sent only when it is wanted.
      ...(request.topK > 0 ? { top_k: request.topK } : {}),
      seed: request.seed,
    };
  }

  #result(reply: ChatReply, tokens: readonly number[], request: SampleRequest): SampleResult {
    const { counts } = this.#options;
    const cut = counts.see(request.affinityKey, request.prompt.length, reply.promptTokens);
    const notes = cut === null ? notesOn(reply) : [cut, ...notesOn(reply)];
    const stopReason = stopReasonOf(reply, request.maxTokens);
    const [endOfTurn] = request.stopTokens;
    return {
      // The stop token is part of a finished sample; the server keeps its own to itself.
      tokens: stopReason === "stop" && endOfTurn !== undefined ? [...tokens, endOfTurn] : tokens,
      logprobs: null,
      stopReason,
      policyVersion: this.#options.policyVersion,
      cacheHitTokens: reply.cachedTokens ?? 0,
      ...(notes.length === 0 ? {} : { notes }),
    };
  }
}

/** Some servers say "tool_calls" of an answer that used up its tokens: what was cut must not be run. */
const stopReasonOf = ({ finishReason, completionTokens }: ChatReply, maxTokens: number): "stop" | "length" =>
  isLength(finishReason) || (completionTokens ?? 0) >= maxTokens ? "length" : "stop";

const endings: ReadonlySet<string> = new Set(["stop", "tool_calls", "function_call", "length", "max_tokens", "eos"]);
function notesOn({ finishReason }: ChatReply): TurnNote[] {
  if (finishReason !== null && endings.has(finishReason)) return [];
  return [{ kind: "usage", message: `the server ended the answer with reason ${JSON.stringify(finishReason)}` }];
}
