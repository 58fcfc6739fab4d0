/** Samples as they are made, as the server-sent events of `stream: true`: a chunk for what is new of a sample. Pure. */
import type { SampledSequence } from "@rolldeck/backends/gpu-worker/stored-sampler";
import type { ChatAsk, CompletionsAsk } from "@rolldeck/contracts/wire/completions";
import { type Asked, chatLogprobs, headOf, promptIds, textLogprobs, usageOf } from "./completion-answers.ts";
import { GrowingText } from "./growing-text.ts";

interface Progress {
  readonly text: GrowingText;
  tokens: number;
  /** Characters of its tokens' texts, for `text_offset`. */
  offset: number;
  begun: boolean;
}

export class CompletionChunks {
  readonly #asked: Asked;
  readonly #ask: ChatAsk | CompletionsAsk;
  readonly #head: object;
  readonly #samples: readonly Progress[];

  constructor(asked: Asked, ask: ChatAsk | CompletionsAsk) {
    this.#asked = asked;
    this.#ask = ask;
    this.#head = headOf(asked, "messages" in ask ? "chat.completion.chunk" : "text_completion");
    const decode = (tokens: readonly number[]) =>
      asked.tokenizer.decode(tokens, { skipSpecial: ask.skip_special_tokens });
    this.#samples = Array.from({ length: ask.n }, () => ({
      text: new GrowingText(decode),
      tokens: 0,
      offset: 0,
      begun: false,
    }));
  }

  /** Nothing where a client would learn nothing: half a character, and neither ids nor logprobs asked for. */
  news(index: number, tokens: readonly number[], logprobs: readonly number[]): string {
    const sample = this.#samples[index];
    if (sample === undefined) throw new RangeError(`sample ${index} of ${this.#samples.length}`);
    sample.tokens += tokens.length;
    const text = sample.text.push(tokens);
    const { return_token_ids: ids, logprobs: asked } = this.#ask;
    const told = asked != null && asked !== false;
    if (text === "" && !ids && !told) return "";
    return this.#chunk(sample, index, text, {
      finish_reason: null,
      logprobs: told ? this.#logprobs(sample, tokens, logprobs) : null,
      ...(ids ? { token_ids: tokens } : {}),
    });
  }

  /** The last chunk of each sample, the usage where it is asked for, and the mark that all was said. */
  end(stopReasons: readonly SampledSequence["stopReason"][]): string {
    const last = this.#samples.map((sample, index) =>
      this.#chunk(sample, index, sample.text.end(), { finish_reason: stopReasons[index] ?? null, logprobs: null }),
    );
    const tokens = this.#samples.reduce((sum, sample) => sum + sample.tokens, 0);
    const usage = usageOf(this.#asked.prompt.length, tokens);
    const asked = this.#ask.stream_options?.include_usage === true;
    return [...last, asked ? event({ ...this.#head, choices: [], usage }) : "", "data: [DONE]\n\n"].join("");
  }

  #chunk(sample: Progress, index: number, text: string, rest: object): string {
    const first = !sample.begun;
    sample.begun = true;
    const said =
      "messages" in this.#ask
        ? { delta: { ...(first && { role: "assistant" }), ...((first || text !== "") && { content: text }) } }
        : { text };
    return event({
      ...this.#head,
      ...(first ? promptIds(this.#asked, this.#ask) : {}),
      choices: [{ index, ...said, ...rest }],
    });
  }

  #logprobs(sample: Progress, tokens: readonly number[], logprobs: readonly number[]) {
    const { tokenizer } = this.#asked;
    if ("messages" in this.#ask) return { content: chatLogprobs(tokenizer, { tokens, logprobs }), refusal: null };
    const found = textLogprobs(tokenizer, { tokens, logprobs }, sample.offset);
    sample.offset += found.tokens.reduce((sum, text) => sum + text.length, 0);
    return found;
  }
}

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
