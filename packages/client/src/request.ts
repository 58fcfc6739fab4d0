/**
 * One REST call: Bearer token, JSON both ways, answers parsed with the contract's schema. Reads are tried again when the
 * server does not answer; writes only with an Idempotency-Key, which makes the repetition harmless.
 */
import { jsonOrUndefined } from "@rolldeck/contracts/json-or-undefined";
import type { z } from "zod";
import { ApiProblem, problemOf, UnreachableError } from "./api-problem.ts";

export interface RequestOptions {
  /** Origin of the server, `http://127.0.0.1:3000`. */
  readonly url: string;
  /** Owner token or API token. */
  readonly token: string;
  readonly fetch?: typeof fetch;
  /** Times an unanswered request is sent again. */
  readonly retries?: number;
  /** Delay before the first repetition, doubled each time, ms. */
  readonly retryMs?: number;
}

interface Sent {
  readonly method: "GET" | "POST" | "DELETE";
  /** Under /api/v1, starting with a slash. */
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}
export interface Call<T extends z.ZodType> extends Sent {
  readonly reply: T;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** @throws ApiProblem, UnreachableError; an abort passes through */
export async function request<T extends z.ZodType>(options: RequestOptions, call: Call<T>): Promise<z.output<T>> {
  const { bytes } = await requestFile(options, call);
  return call.reply.parse(jsonOrUndefined(new TextDecoder().decode(bytes)));
}

/** An answer that is a file: its bytes as they came. @throws as `request` */
export async function requestFile(options: RequestOptions, call: Sent): Promise<Answer> {
  const mayRepeat = call.method !== "POST" || call.idempotencyKey !== undefined;
  const attempts = mayRepeat ? (options.retries ?? 3) : 0;
  for (let attempt = 0; ; attempt++) {
    try {
      return await send(options, call);
    } catch (error) {
      if (!(error instanceof UnreachableError) || attempt >= attempts) throw error;
      await pause((options.retryMs ?? 200) * 2 ** attempt);
    }
  }
}

interface Answer {
  readonly bytes: Uint8Array;
  readonly headers: Headers;
}

async function send(options: RequestOptions, call: Sent): Promise<Answer> {
  const response = await begin(options, call);
  const bytes = await reading(options, call, () => response.arrayBuffer());
  return { bytes: new Uint8Array(bytes), headers: response.headers };
}

/** An answer that is too large to be held: its bytes come as they are read. @throws as `request`, also while it is read */
export async function requestStream(
  options: RequestOptions,
  call: Sent,
): Promise<{ readonly headers: Headers; readonly bytes: AsyncGenerator<Uint8Array, void, void> }> {
  const { headers, body } = await begin(options, call);
  return { headers, bytes: streamed(options, call, body) };
}

async function* streamed(
  options: RequestOptions,
  call: Sent,
  body: ReadableStream<Uint8Array> | null,
): AsyncGenerator<Uint8Array, void, void> {
  const reader = body?.getReader();
  try {
    for (;;) {
      const part = await reading(options, call, async () => reader?.read());
      if (part === undefined || part.done) return;
      yield part.value;
    }
  } finally {
    await reader?.cancel().catch(() => undefined);
  }
}

/** Until the answer's headers are there. @throws ApiProblem with the answer's own words where it refuses */
async function begin(options: RequestOptions, call: Sent): Promise<Response> {
  const url = `${options.url.replace(/\/+$/, "")}/api/v1${call.path}${queryText(call.query)}`;
  const response = await reading(options, call, () =>
    (options.fetch ?? fetch)(url, {
      method: call.method,
      headers: {
        authorization: `Bearer ${options.token}`,
        accept: "application/json",
        ...(call.body === undefined ? {} : { "content-type": "application/json" }),
        ...(call.idempotencyKey ? { "idempotency-key": call.idempotencyKey } : {}),
      },
      body: call.body === undefined ? undefined : JSON.stringify(call.body),
      signal: call.signal,
    }),
  );
  if (response.ok) return response;
  const text = await reading(options, call, () => response.text());
  throw new ApiProblem(problemOf(response.status, jsonOrUndefined(text)));
}

/** What fails between the server and here is one kind of error. */
async function reading<T>(options: RequestOptions, call: Sent, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    if (call.signal?.aborted) throw cause;
    throw new UnreachableError(options.url, cause);
  }
}

function queryText(query: Sent["query"]): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {}))
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== undefined && item !== null) search.append(name, String(item));
  return search.size > 0 ? `?${search}` : "";
}
