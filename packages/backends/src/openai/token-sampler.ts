/** Samples over a wire of token ids. What a server says, whole or streamed, well or broken, becomes one outcome of a try. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SampleRequest, SampleResult, Sampler } from "@rolldeck/contracts/ports/sampler";
import { z } from "zod";
import { headerSafe } from "../http/header-safe.ts";
import { hideSecrets } from "../http/hide-secrets.ts";
import type { HttpAnswer } from "../http/kept-alive-server.ts";
import { promptBody, type RequestBody } from "../http/prompt-body.ts";
import type { ResilientCalls, Wait } from "../resilient/resilient-calls.ts";
import { parseRetryAfter } from "../resilient/retry-after.ts";
import type { Retry, Try } from "../resilient/retry-policy.ts";
import type { EndpointTarget } from "./endpoint-target.ts";
import { takeOutEcho } from "./prompt-echo.ts";
import { errorInside, type Refused, readRefusal } from "./read-refusal.ts";
import { SseEvents } from "./sse-events.ts";
import { tokenSample } from "./token-answer.ts";
import { type AnswerPart, joinParts, type TokenWire } from "./token-wires.ts";

export interface TokenSamplerOptions {
  readonly wire: TokenWire;
  readonly calls: ResilientCalls<EndpointTarget>;
  readonly model: string;
  readonly stream: boolean;
  readonly policyVersion: number;
  readonly secrets: readonly string[];
  readonly onWait?: (wait: Wait) => void;
}
type Read = Try<{ readonly part: AnswerPart; readonly samePrompt: boolean | null; readonly streamed: boolean }>;

export class TokenSampler implements Sampler {
  readonly #options: TokenSamplerOptions;

  constructor(options: TokenSamplerOptions) {
    this.#options = options;
  }

  async sample(request: SampleRequest, signal: AbortSignal): Promise<SampleResult> {
    const { wire, calls, model, stream, onWait } = this.#options;
    const { before, after } = wire.body(request, { model, stream });
    // Once for all tries.
    const body = promptBody(before, request.prompt, after);
    const headers = { "x-rolldeck-affinity": headerSafe(request.affinityKey) };
    return calls.call({
      affinityKey: request.affinityKey,
      signal,
      onWait,
      attempt: async (target, trySignal) => {
        const what = `POST ${target.name}${wire.path}`;
        const read = await this.#send(target, body, headers, trySignal, request, what);
        return read.is === "done" ? this.#judge(read.value, request, what) : read;
      },
    });
  }

  async #send(
    target: EndpointTarget,
    body: RequestBody,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
    request: SampleRequest,
    what: string,
  ): Promise<Read> {
    const { path } = this.#options.wire;
    try {
      const answer = await target.server.send({ method: "POST", path, body, headers, signal });
      return await this.#read(answer, request, what);
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      return unreachable(what, cause);
    }
  }

  async #read(answer: HttpAnswer, request: SampleRequest, what: string): Promise<Read> {
    const { status, retryAfter } = answer;
    if (status < 200 || status >= 300) {
      return this.#refused(await answer.body.text(), status, parseRetryAfter(retryAfter, Date.now()), what);
    }
    if (answer.contentType.includes("text/event-stream")) return this.#readStream(answer, request, what);
    const { text, samePrompt } = takeOutEcho(await answer.body.bytes(), () => request.prompt.json());
    const part = this.#part(text, what);
    return part.is === "done" ? { is: "done", value: { part: part.value, samePrompt, streamed: false } } : part;
  }

  async #readStream(answer: HttpAnswer, request: SampleRequest, what: string): Promise<Read> {
    const events = new SseEvents();
    const parts: AnswerPart[] = [];
    let samePrompt: boolean | null = null;
    let finished = false;
    const take = (data: string): Exclude<Read, { is: "done" }> | null => {
      if (data === "[DONE]") {
        finished = true;
        return null;
      }
      const found = takeOutEcho(Buffer.from(data), () => request.prompt.json());
      samePrompt = found.samePrompt ?? samePrompt;
      const part = this.#part(found.text, what);
      if (part.is !== "done") return part;
      parts.push(part.value);
      return null;
    };
    for await (const bytes of answer.body) {
      for (const data of events.push(bytes)) {
        const broken = take(data);
        if (broken !== null) return broken;
      }
    }
    for (const data of events.end()) {
      const broken = take(data);
      if (broken !== null) return broken;
    }
    const part = joinParts(parts);
    // A connection that ends in the middle may end politely.
    if (!finished && part.finishReason === null) return badAnswer(what, "the stream ended before the sample did");
    return { is: "done", value: { part, samePrompt, streamed: true } };
  }

  #part(text: string, what: string): Try<AnswerPart> {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      // The parser's own message quotes the text, keys and all.
      return badAnswer(what, `the answer is not JSON: ${this.#hide(text).slice(0, 100)}`);
    }
    const error = errorInside(json);
    if (error !== null) return this.#refused(error, null, null, what);
    try {
      return { is: "done", value: this.#options.wire.read(json) };
    } catch (cause) {
      return badAnswer(
        what,
        cause instanceof z.ZodError ? z.prettifyError(cause).slice(0, 200) : "not understood",
        cause,
      );
    }
  }

  #judge(
    { part, samePrompt, streamed }: Extract<Read, { is: "done" }>["value"],
    request: SampleRequest,
    what: string,
  ): Try<SampleResult> {
    const { finishReason } = part;
    if (finishReason === "abort" || finishReason === "error")
      return badAnswer(what, `the server gave up: ${finishReason}`);
    try {
      const value = tokenSample({ ...part, samePrompt, streamed }, request, this.#options.policyVersion, what);
      return { is: "done", value };
    } catch (error) {
      if (error instanceof BoundaryError) return { is: "failed", error };
      throw error;
    }
  }

  #refused(text: string, status: number | null, retryAfterMs: number | null, what: string): Refused {
    return readRefusal({ status, retryAfterMs, text: this.#hide(text) }, what);
  }

  #hide(text: string): string {
    return hideSecrets(text, this.#options.secrets);
  }
}

/** The connection failed, before the answer or in the middle of it. */
export function unreachable(what: string, cause: unknown): Retry {
  const words = cause instanceof Error ? cause.message : String(cause);
  const error = new BoundaryError("model-server", "unreachable", `${what}: ${words || "the connection was lost"}`, {
    cause,
    retryable: true,
  });
  return { is: "retry", error, retryAfterMs: null, down: true };
}

export function badAnswer(what: string, words: string, cause?: unknown): Retry {
  const error = new BoundaryError("model-server", "bad_answer", `${what}: ${words}`, { cause, retryable: true });
  return { is: "retry", error, retryAfterMs: null, down: false };
}
