/**
 * Requests to one server over kept-alive connections, with the retry rules of the protocol.
 *
 * Invariants:
 * - What fails is one of our typed errors with its cause, or the caller's own abort reason.
 * - A body is serialised once, however often it is sent.
 * - An aborted request closes its connection, which cancels the work behind it.
 * - A failing server is asked again for `outageMs` in a row at most; a forbidden time (Retry-After) longer than the cap fails at
 *   once, so that nobody waits silently for days.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { errors, Pool } from "undici";
import { type Answer, classify } from "./classify.ts";

export interface HttpOptions {
  readonly url: string;
  readonly apiKey: string | null;
  /** Default 1024: every rollout in its model call holds a connection. */
  readonly maxConnections?: number;
  /** First pause before a retry, milliseconds; doubles up to 30 s, with jitter. Default 100. */
  readonly backoffMs?: number;
}
export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  /** From the root: `/api/v1/asample`. */
  readonly path: string;
  /** JSON text. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** How long failures in a row are waited out, milliseconds; 0 = the first one is final. */
  readonly outageMs: number;
  /** Default: no limit, the server works as long as it needs. A late answer is a failure like a lost connection. */
  readonly answerWithinMs?: number;
  /** A poll that the server may hold open: no answer within this means "not ready yet". */
  readonly pollWithinMs?: number;
}
/** What a call ends with once retries are over. */
export type Settled = Extract<Answer, { is: "done" | "pending" | "lost" }>;

const maxBackoffMs = 30_000;
/** A server that asks for more patience than this is reported instead of obeyed. */
export const maxRetryAfterMs = 60_000;

export class TinkerHttp {
  readonly #pool: Pool;
  readonly #prefix: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #backoffMs: number;

  constructor(options: HttpOptions) {
    const url = new URL(options.url);
    this.#prefix = url.pathname.replace(/\/+$/, "");
    this.#headers = options.apiKey === null ? {} : { "x-api-key": options.apiKey };
    this.#backoffMs = options.backoffMs ?? 100;
    this.#pool = new Pool(url.origin, {
      connections: options.maxConnections ?? 1024,
      pipelining: 1,
      keepAliveTimeout: 30_000,
      // Nagle is off in undici's connector; a request is one write.
      connect: { timeout: 5_000 },
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Sends until it is answered for good. @throws BoundaryError("model-server"), FencedError, or the signal's reason */
  async call(call: Call): Promise<Settled> {
    let failingSince: number | null = null;
    for (let tries = 0; ; tries++) {
      const answer = await this.#once(call);
      if (answer.is === "failed") throw answer.error;
      if (answer.is !== "retry") return answer;
      failingSince ??= performance.now();
      const pauseMs = this.#pause(tries, answer.retryAfterMs);
      const spentMs = performance.now() - failingSince;
      if (pauseMs > maxRetryAfterMs || spentMs + pauseMs > call.outageMs) throw gaveUp(answer, spentMs);
      await pause(pauseMs, call.signal);
    }
  }

  /** The JSON of a call that is answered at once. */
  async json(call: Call): Promise<unknown> {
    const answer = await this.call(call);
    if (answer.is === "done") return answer.json;
    throw new BoundaryError("model-server", "bad_answer", `${nameOf(call)}: ended as ${answer.is}`, {
      retryable: true,
    });
  }

  /** Closes every connection; what is under way ends with an error. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  /** Never shorter than what the server asked for. Jitter keeps a crowd of rollouts from coming back at once. */
  #pause(tries: number, retryAfterMs: number | null): number {
    const backoffMs = Math.min(maxBackoffMs, this.#backoffMs * 2 ** Math.min(tries, 10)) * (0.5 + Math.random() / 2);
    return retryAfterMs === null ? backoffMs : retryAfterMs + Math.min(backoffMs, 1000);
  }

  async #once(call: Call): Promise<Answer> {
    call.signal?.throwIfAborted();
    try {
      const { statusCode, headers, body } = await this.#pool.request({
        method: call.method,
        path: this.#prefix + call.path,
        headers: {
          ...this.#headers,
          ...call.headers,
          ...(call.body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(call.body === undefined ? {} : { body: call.body }),
        ...(call.signal === undefined ? {} : { signal: call.signal }),
        headersTimeout: call.pollWithinMs ?? call.answerWithinMs ?? 0,
      });
      const retryAfter = headers["retry-after"];
      const text = await body.text();
      const answer = { status: statusCode, retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter, text };
      return classify(answer, nameOf(call), Date.now());
    } catch (cause) {
      if (call.signal?.aborted) throw call.signal.reason;
      if (call.pollWithinMs !== undefined && cause instanceof errors.HeadersTimeoutError) return { is: "pending" };
      const message = `${nameOf(call)}: ${cause instanceof Error ? cause.message : String(cause)}`;
      const error = new BoundaryError("model-server", "unreachable", message, { cause, retryable: true });
      return { is: "retry", error, retryAfterMs: null };
    }
  }
}

/** @throws the signal's reason */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  } catch (cause) {
    throw signal?.aborted ? signal.reason : cause;
  }
}

function gaveUp(answer: Extract<Answer, { is: "retry" }>, spentMs: number): BoundaryError {
  const { error, retryAfterMs } = answer;
  const after = spentMs < 1 ? "" : ` (for ${(spentMs / 1000).toFixed(1)} s)`;
  return new BoundaryError(error.boundary, error.code, `${error.message}${after}`, {
    cause: error,
    retryable: true,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  });
}

const nameOf = (call: Call): string => `${call.method} ${call.path}`;
