/**
 * Requests to /v1/chat/completions through the `openai` client, whole or streamed. The client repeats nothing itself and reads
 * nothing from the environment: repeats are the resilient layer's, and only what the operator listed is sent.
 */
import OpenAI, { APIConnectionError, APIError } from "openai";
import type { ChatCompletionCreateParams } from "openai/resources/chat/completions";
import { Agent, fetch as undiciFetch } from "undici";
import { z } from "zod";
import { basicAuthorisation } from "../http/basic-authorisation.ts";
import { headerSafe } from "../http/header-safe.ts";
import { hideSecrets } from "../http/hide-secrets.ts";
import type { ResilientCalls, Wait } from "../resilient/resilient-calls.ts";
import { parseRetryAfter } from "../resilient/retry-after.ts";
import type { Try } from "../resilient/retry-policy.ts";
import type { ChatText } from "./chat-text.ts";
import { type Endpoint, versionedUrl } from "./endpoint.ts";
import type { EndpointTarget } from "./endpoint-target.ts";
import { errorInside, readRefusal } from "./read-refusal.ts";
import { badAnswer, unreachable } from "./token-sampler.ts";

export interface ChatCall {
  readonly affinityKey: string;
  /** Without `stream`, which the endpoint decides. */
  readonly body: Omit<ChatCompletionCreateParams, "stream" | "stream_options">;
  readonly toolNames: ReadonlySet<string>;
  readonly chatText: ChatText;
  readonly signal: AbortSignal;
  readonly onWait?: ((wait: Wait) => void) | undefined;
}
export interface ChatReply {
  readonly text: string;
  readonly finishReason: string | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly cachedTokens: number | null;
}
export interface ChatCallsOptions {
  readonly endpoint: Endpoint;
  readonly calls: ResilientCalls<EndpointTarget>;
  readonly secrets: readonly string[];
}

const Usage = z
  .object({
    prompt_tokens: z.number().nullish(),
    completion_tokens: z.number().nullish(),
    prompt_tokens_details: z.object({ cached_tokens: z.number().nullish() }).nullish(),
  })
  .nullish();
const Choice = z.object({ message: z.unknown(), finish_reason: z.string().nullish() });
const Whole = z.object({ choices: z.array(Choice).min(1), usage: Usage });
const Chunk = z.object({
  choices: z.array(z.object({ delta: z.unknown(), finish_reason: z.string().nullish() })).default([]),
  usage: Usage,
});

export class ChatCalls {
  readonly #options: ChatCallsOptions;
  readonly #agent: Agent;
  readonly #clients = new Map<EndpointTarget, OpenAI>();

  constructor(options: ChatCallsOptions) {
    this.#options = options;
    // Time limits are the resilient layer's.
    this.#agent = new Agent({ connections: options.endpoint.maxConnections, headersTimeout: 0, bodyTimeout: 0 });
  }

  /** @throws BoundaryError("model-server"), or the signal's reason */
  complete(call: ChatCall): Promise<ChatReply> {
    const { affinityKey, signal, onWait } = call;
    return this.#options.calls.call({
      affinityKey,
      signal,
      onWait,
      attempt: (target, trySignal) => this.#try(call, target, trySignal),
    });
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #try(call: ChatCall, target: EndpointTarget, signal: AbortSignal | undefined): Promise<Try<ChatReply>> {
    const what = `POST ${target.name}/chat/completions`;
    try {
      const reply =
        (this.#options.endpoint.stream ?? true)
          ? await this.#streamed(call, target, signal, what)
          : await this.#whole(call, target, signal, what);
      if (signal?.aborted) throw signal.reason;
      return reply;
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      return this.#failed(cause, what);
    }
  }

  async #whole(
    call: ChatCall,
    target: EndpointTarget,
    signal: AbortSignal | undefined,
    what: string,
  ): Promise<Try<ChatReply>> {
    const body: ChatCompletionCreateParams = { ...this.#body(call), stream: false };
    const request = this.#client(target).chat.completions.create(body, requestOptions(call, signal));
    return this.#readWhole(await (await request.asResponse()).text(), call, what);
  }

  async #streamed(
    call: ChatCall,
    target: EndpointTarget,
    signal: AbortSignal | undefined,
    what: string,
  ): Promise<Try<ChatReply>> {
    const body: ChatCompletionCreateParams = {
      ...this.#body(call),
      stream: true,
      ...(this.#omits("stream_options") ? {} : { stream_options: { include_usage: true } }),
    };
    const request = this.#client(target).chat.completions.create(body, requestOptions(call, signal));
    const { data: stream, response } = await request.withResponse();
    // A gateway that does not stream, or an error inside HTTP 200.
    if (!response.headers.get("content-type")?.includes("text/event-stream")) {
      return this.#readWhole(await response.text(), call, what);
    }
    const answer = call.chatText.stream(call.toolNames);
    let finishReason: string | null = null;
    let usage: z.infer<typeof Usage>;
    for await (const json of stream) {
      const error = errorInside(json);
      if (error !== null) return this.#refused(error, what);
      const chunk = Chunk.parse(json);
      const [choice] = chunk.choices;
      if (choice?.delta !== undefined && choice.delta !== null) answer.push(choice.delta);
      finishReason = choice?.finish_reason ?? finishReason;
      usage = chunk.usage ?? usage;
    }
    if (finishReason === null) return badAnswer(what, "the stream ended before the answer did");
    return this.#reply(answer.text(), finishReason, usage, what);
  }

  /** The endpoint's own wishes; what a request needs wins over them. */
  #body({ body }: ChatCall): ChatCall["body"] {
    const wanted = Object.entries(body).filter(([field]) => !this.#omits(field));
    return { ...this.#options.endpoint.extraBody, ...(Object.fromEntries(wanted) as ChatCall["body"]) };
  }

  #omits(field: string): boolean {
    return this.#options.endpoint.omitFields.some((omitted) => omitted === field);
  }

  #readWhole(text: string, call: ChatCall, what: string): Try<ChatReply> {
    const json: unknown = JSON.parse(text);
    const error = errorInside(json);
    if (error !== null) return this.#refused(error, what);
    const { choices, usage } = Whole.parse(json);
    const [choice] = choices;
    return this.#reply(call.chatText.whole(choice?.message), choice?.finish_reason ?? null, usage, what);
  }

  #reply(text: string, finishReason: string | null, usage: z.infer<typeof Usage>, what: string): Try<ChatReply> {
    if (finishReason === "error" || finishReason === "abort")
      return badAnswer(what, `the server gave up: ${finishReason}`);
    const value = {
      text,
      finishReason,
      promptTokens: usage?.prompt_tokens ?? null,
      completionTokens: usage?.completion_tokens ?? null,
      cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? null,
    };
    return { is: "done", value };
  }

  #failed(cause: unknown, what: string): Try<ChatReply> {
    if (cause instanceof APIConnectionError) return unreachable(what, cause.cause ?? cause);
    if (cause instanceof APIError) return this.#refusedStatus(cause, what);
    if (cause instanceof SyntaxError) return badAnswer(what, "the answer is not JSON");
    if (cause instanceof z.ZodError) return badAnswer(what, z.prettifyError(cause).slice(0, 200), cause);
    // Undici's own: the connection was lost in the middle of an answer.
    return unreachable(what, cause);
  }

  #refusedStatus(error: APIError, what: string): Try<ChatReply> {
    const text = error.error === undefined ? error.message : JSON.stringify({ error: error.error });
    const retryAfter = error.headers?.get("retry-after") ?? undefined;
    const retryAfterMs = parseRetryAfter(retryAfter, Date.now());
    return readRefusal({ status: error.status ?? null, retryAfterMs, text: this.#hide(text) }, what);
  }

  #refused(text: string, what: string): Try<ChatReply> {
    return readRefusal({ status: null, retryAfterMs: null, text: this.#hide(text) }, what);
  }

  #hide(text: string): string {
    return hideSecrets(text, this.#options.secrets);
  }

  #client(target: EndpointTarget): OpenAI {
    const known = this.#clients.get(target);
    if (known !== undefined) return known;
    const made = new OpenAI({
      apiKey: target.key ?? "none",
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      baseURL: withoutUser(versionedUrl(target.url)),
      maxRetries: 0,
      timeout: 2 ** 31 - 1,
      logLevel: "off",
      fetch: ownFetch(target, this.#agent),
    });
    this.#clients.set(target, made);
    return made;
  }
}

const requestOptions = ({ affinityKey }: ChatCall, signal: AbortSignal | undefined) => ({
  headers: { "x-rolldeck-affinity": headerSafe(affinityKey) },
  ...(signal === undefined ? {} : { signal }),
});

/** Sends the headers it means to send, whatever the environment made the client add. */
function ownFetch(target: EndpointTarget, dispatcher: Agent): typeof fetch {
  const own = async (input: unknown, init?: RequestInit) => {
    const given = new Headers(init?.headers);
    const affinity = given.get("x-rolldeck-affinity");
    const headers: Record<string, string> = {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...(affinity === null ? {} : { "x-rolldeck-affinity": affinity }),
      ...basicAuthorisation(new URL(target.url)),
      ...(target.key === null ? {} : { authorization: `Bearer ${target.key}` }),
    };
    return undiciFetch(String(input), { ...init, headers, dispatcher } as Parameters<typeof undiciFetch>[1]);
  };
  return own as typeof fetch;
}

function withoutUser(url: string): string {
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  return bare.toString();
}
