/** Samples from a checkpoint that a GPU worker has stored: the worker loads it when it is first asked for. */

import { BoundaryError } from "@rolldeck/contracts/errors";
import { jsonOrUndefined } from "@rolldeck/contracts/json-or-undefined";
import { SampleNews, SampleReply } from "@rolldeck/contracts/wire/tinker";
import type { HttpAnswer } from "../http/kept-alive-server.ts";
import { openServer, type ServerAddress } from "../http/open-server.ts";
import { refusalOf } from "./worker-refusal.ts";

export interface StoredSample {
  readonly prompt: readonly number[];
  readonly samples: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** −1 = off. */
  readonly topK: number;
  /** Null = a random one. */
  readonly seed: number | null;
  /** Token ids, or texts. */
  readonly stop: readonly number[] | readonly string[];
}
export interface SampledSequence {
  readonly tokens: readonly number[];
  /** Of each token, nats. */
  readonly logprobs: readonly number[];
  readonly stopReason: "stop" | "length";
}
/** What is new of a sample, or, once and last, why each ended. */
export type SamplePiece =
  | { readonly sample: number; readonly tokens: readonly number[]; readonly logprobs: readonly number[] }
  | { readonly stopReasons: readonly SampledSequence["stopReason"][] };

export class StoredSampler {
  readonly #server: ReturnType<typeof openServer>;

  constructor({ url, apiKey }: { readonly url: ServerAddress; readonly apiKey: string }) {
    this.#server = openServer(url, { headers: { "x-api-key": apiKey }, maxConnections: 256 });
  }

  /** @throws BoundaryError model-server, its `code` the worker's own word */
  async sample(path: string, asked: StoredSample, signal: AbortSignal): Promise<SampledSequence[]> {
    const answer = await this.#ask({ path, asked, stream: false }, signal);
    const reply = SampleReply.safeParse(jsonOrUndefined(await textOf(answer, signal)));
    if (!reply.success) throw badAnswer("the GPU worker's answer is no sample", reply.error);
    return reply.data.sequences.map(({ tokens, logprobs, stop_reason }) => {
      if (logprobs?.length !== tokens.length)
        throw badAnswer(`${tokens.length} tokens with ${logprobs?.length ?? 0} logprobs`);
      return { tokens, logprobs, stopReason: stop_reason };
    });
  }

  /**
   * The same, as it is made. Whoever stops reading, or aborts, ends the sample on the worker.
   * @throws BoundaryError as `sample`; also in the middle, where the worker gives up or goes away
   */
  async *stream(path: string, asked: StoredSample, signal: AbortSignal): AsyncGenerator<SamplePiece, void, void> {
    const { body } = await this.#ask({ path, asked, stream: true }, signal);
    try {
      for await (const line of linesOf(body)) {
        const piece = pieceOf(line, asked.samples);
        yield piece;
        if ("stopReasons" in piece) return;
      }
    } catch (cause) {
      throw cause instanceof BoundaryError ? cause : away(cause, signal);
    } finally {
      body.on("error", () => undefined);
      body.destroy();
    }
    throw badAnswer("the GPU worker's sample has no end");
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  /** The answer's body is still to be read. */
  async #ask(
    ask: { readonly path: string; readonly asked: StoredSample; readonly stream: boolean },
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const request = { method: "POST", path: "/ext/v1/sample", body: bodyOf(ask), signal } as const;
    const answer = await this.#server.send(request).catch((cause: unknown) => {
      throw away(cause, signal);
    });
    if (answer.status !== 200) throw refusalOf(answer.status, await textOf(answer, signal));
    return answer;
  }
}

function bodyOf(ask: { readonly path: string; readonly asked: StoredSample; readonly stream: boolean }): string {
  const { prompt, samples, maxTokens, temperature, topP, topK, seed, stop } = ask.asked;
  return JSON.stringify({
    model_path: ask.path,
    prompt: { chunks: [{ type: "encoded_text", tokens: prompt }] },
    num_samples: samples,
    sampling_params: {
      max_tokens: maxTokens,
      temperature,
      top_p: topP,
      top_k: topK > 0 ? topK : -1,
      ...(seed === null ? {} : { seed }),
      stop,
    },
    ...(ask.stream && { stream: true }),
  });
}

const textOf = ({ body }: HttpAnswer, signal: AbortSignal): Promise<string> =>
  body.text().catch((cause: unknown) => {
    throw away(cause, signal);
  });

/** The signal's own reason where it is that. */
function away(cause: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const words = "the GPU worker does not answer";
  return new BoundaryError("model-server", "unreachable", words, { cause, retryable: true });
}

const badAnswer = (words: string, cause?: unknown) => new BoundaryError("model-server", "bad_answer", words, { cause });

function pieceOf(line: string, samples: number): SamplePiece {
  const news = SampleNews.safeParse(jsonOrUndefined(line));
  if (!news.success) throw badAnswer("the GPU worker's news of a sample can't be read", news.error);
  if ("error" in news.data) {
    const { code, detail } = news.data.error;
    throw new BoundaryError("model-server", code, detail);
  }
  if ("stop_reasons" in news.data) {
    if (news.data.stop_reasons.length !== samples) throw badAnswer("the GPU worker ended another number of samples");
    return { stopReasons: news.data.stop_reasons };
  }
  const { sample, tokens, logprobs } = news.data;
  if (sample >= samples || tokens.length !== logprobs.length)
    throw badAnswer(`${tokens.length} tokens with ${logprobs.length} logprobs of sample ${sample}`);
  return { sample, tokens, logprobs };
}

/** A step's news of one sample is short. */
const maxLine = 4 * 1024 * 1024;

async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of body) {
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > maxLine) throw badAnswer("the GPU worker's news of a sample has no end");
    yield* lines;
  }
}
