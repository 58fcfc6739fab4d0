/**
 * One REST call: Bearer token, JSON both ways, answers parsed with the contract's schema. Reads are tried again when the
 * server does not answer; writes only with an Idempotency-Key, which makes the repetition harmless.
 */
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

export interface Call<T extends z.ZodType> {
  readonly method: "GET" | "POST" | "DELETE";
  /** Under /api/v1, starting with a slash. */
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly reply: T;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** @throws ApiProblem, UnreachableError; an abort passes through */
export async function request<T extends z.ZodType>(options: RequestOptions, call: Call<T>): Promise<z.output<T>> {
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

async function send<T extends z.ZodType>(options: RequestOptions, call: Call<T>): Promise<z.output<T>> {
  const url = `${options.url.replace(/\/+$/, "")}/api/v1${call.path}${queryText(call.query)}`;
  let response: Response;
  let text: string;
  try {
    response = await (options.fetch ?? fetch)(url, {
      method: call.method,
      headers: {
        authorization: `Bearer ${options.token}`,
        accept: "application/json",
        ...(call.body === undefined ? {} : { "content-type": "application/json" }),
        ...(call.idempotencyKey ? { "idempotency-key": call.idempotencyKey } : {}),
      },
      body: call.body === undefined ? undefined : JSON.stringify(call.body),
      signal: call.signal,
    });
    text = await response.text();
  } catch (cause) {
    if (call.signal?.aborted) throw cause;
    throw new UnreachableError(options.url, cause);
  }
  const body = parseJson(text);
  if (!response.ok) throw new ApiProblem(problemOf(response.status, body));
  return call.reply.parse(body);
}

function queryText(query: Call<z.ZodType>["query"]): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {}))
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== undefined && item !== null) search.append(name, String(item));
  return search.size > 0 ? `?${search}` : "";
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
