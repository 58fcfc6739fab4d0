/** One server over kept-alive connections. It repeats nothing and judges nothing: what comes back is status and bytes. */
import type { Readable } from "node:stream";
import { Pool } from "undici";
import { basicAuthorisation } from "./basic-authorisation.ts";
import type { RequestBody } from "./prompt-body.ts";

export interface KeptAliveOptions {
  /** A path in it is put before every request's. User and password in it become a Basic authorization. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Default 4096: every rollout in its model call holds a connection. */
  readonly maxConnections?: number;
}
export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** From the root: `/v1/completions`. */
  readonly path: string;
  /** JSON. */
  readonly body?: RequestBody;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Throws undici's HeadersTimeoutError when the answer has not begun by then; 0 = no limit. */
  readonly headersWithinMs?: number;
}
export interface HttpAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly contentType: string;
  /** Its first value. @param name in lower case */
  readonly header: (name: string) => string | undefined;
  /** To be read whole or destroyed. */
  readonly body: Readable & { text(): Promise<string>; bytes(): Promise<Uint8Array> };
}

export class KeptAliveServer {
  /** The address as people may see it: without user and password. */
  readonly shownUrl: string;
  readonly #pool: Pool;
  readonly #prefix: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(options: KeptAliveOptions) {
    const url = new URL(options.url);
    this.#prefix = url.pathname.replace(/\/+$/, "");
    this.shownUrl = url.origin + this.#prefix;
    this.#headers = { ...basicAuthorisation(url), ...options.headers };
    this.#pool = new Pool(url.origin, {
      connections: options.maxConnections ?? 4096,
      pipelining: 1,
      keepAliveTimeout: 30_000,
      // Nagle is off in undici's connector; a request is one write.
      connect: { timeout: 5_000 },
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** @throws undici's errors, or the signal's reason */
  async send(request: HttpRequest): Promise<HttpAnswer> {
    const { method, body, signal } = request;
    const {
      statusCode,
      headers,
      body: answer,
    } = await this.#pool.request({
      method,
      path: this.#prefix + request.path,
      headers: {
        ...this.#headers,
        ...request.headers,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        // Parts don't say how long they are together, and without a length they would go in chunks.
        ...(isParts(body) ? { "content-length": String(lengthOf(body)) } : {}),
      },
      ...(body === undefined ? {} : { body: isParts(body) ? inOrder(body) : body }),
      ...(signal === undefined ? {} : { signal }),
      headersTimeout: request.headersWithinMs ?? 0,
    });
    const contentType = first(headers["content-type"]) ?? "";
    const header = (name: string): string | undefined => first(headers[name]);
    return { status: statusCode, retryAfter: header("retry-after"), contentType, header, body: answer };
  }

  /** Closes every connection; what is under way ends with an error. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

const first = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

const isParts = (body: RequestBody | undefined): body is readonly Uint8Array[] => Array.isArray(body);

const lengthOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, part) => sum + part.length, 0);

/** undici sends what any async iterable gives, at less cost than a stream; its types name streams alone. */
function inOrder(parts: readonly Uint8Array[]): Readable {
  const iterable = (async function* () {
    yield* parts;
  })();
  return iterable as AsyncIterable<Uint8Array> as Readable;
}
