/** Samples as the bodies of `/v1/completions` and `/v1/chat/completions`, with vLLM's token ids where they are asked for. Pure. */
import type { SampledSequence } from "@rolldeck/backends/gpu-worker/stored-sampler";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { ChatAsk, CompletionsAsk } from "@rolldeck/contracts/wire/completions";

export interface Asked {
  readonly id: string;
  /** Unix time, seconds. */
  readonly created: number;
  readonly model: string;
  readonly prompt: readonly number[];
  readonly tokenizer: Pick<Tokenizer, "decode" | "tokenTexts">;
}
export interface Sampled extends Asked {
  readonly sequences: readonly SampledSequence[];
}
type Shown = Pick<ChatAsk | CompletionsAsk, "return_token_ids" | "skip_special_tokens">;

export const chatAnswer = (sampled: Sampled, ask: ChatAsk) => ({
  ...headOf(sampled, "chat.completion"),
  ...promptIds(sampled, ask),
  choices: sampled.sequences.map((sequence, index) => ({
    index,
    message: { role: "assistant", content: textOf(sampled, sequence, ask), refusal: null },
    ...endOf(sequence, ask),
    logprobs: ask.logprobs === true ? { content: chatLogprobs(sampled.tokenizer, sequence), refusal: null } : null,
  })),
  usage: usageOf(sampled.prompt.length, drawn(sampled)),
});

export const completionsAnswer = (sampled: Sampled, ask: CompletionsAsk) => ({
  ...headOf(sampled, "text_completion"),
  ...promptIds(sampled, ask),
  choices: sampled.sequences.map((sequence, index) => ({
    index,
    text: textOf(sampled, sequence, ask),
    ...endOf(sequence, ask),
    logprobs: ask.logprobs == null ? null : textLogprobs(sampled.tokenizer, sequence),
  })),
  usage: usageOf(sampled.prompt.length, drawn(sampled)),
});

export const headOf = ({ id, created, model }: Asked, object: string) => ({ id, object, created, model });
export const promptIds = ({ prompt }: Asked, ask: Shown) => (ask.return_token_ids ? { prompt_token_ids: prompt } : {});

const textOf = ({ tokenizer }: Sampled, { tokens }: SampledSequence, ask: Shown): string =>
  tokenizer.decode(tokens, { skipSpecial: ask.skip_special_tokens });

const endOf = ({ stopReason, tokens }: SampledSequence, ask: Shown) => ({
  finish_reason: stopReason,
  ...(ask.return_token_ids ? { token_ids: tokens } : {}),
});

type Drawn = Pick<SampledSequence, "tokens" | "logprobs">;

export const chatLogprobs = (tokenizer: Pick<Tokenizer, "tokenTexts">, { tokens, logprobs }: Drawn) =>
  tokenizer.tokenTexts(tokens).map((token, at) => ({
    token,
    logprob: logprobs[at] ?? null,
    bytes: [...Buffer.from(token)],
    top_logprobs: [],
  }));

/** @param from characters before the first of these tokens */
export function textLogprobs(tokenizer: Pick<Tokenizer, "tokenTexts">, { tokens, logprobs }: Drawn, from = 0) {
  const texts = tokenizer.tokenTexts(tokens);
  let offset = from;
  const offsets = texts.map((text) => {
    const at = offset;
    offset += text.length;
    return at;
  });
  return { tokens: texts, token_logprobs: logprobs, top_logprobs: null, text_offset: offsets };
}

const drawn = ({ sequences }: Sampled): number => sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);

export const usageOf = (prompt: number, completion: number) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});
