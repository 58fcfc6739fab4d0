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
import { BoundaryError } from "@rolldeck/contracts/errors";
import { errors } from "undici";
import { hideSecrets } from "../http/hide-secrets.ts";
import { openServer, type ServerAddress } from "../http/open-server.ts";
import type { RequestBody } from "../http/prompt-body.ts";
import { ResilientCalls, type Wait } from "../resilient/resilient-calls.ts";
import type { RetryPolicy, Try } from "../resilient/retry-policy.ts";
import { type Answer, classify } from "./classify.ts";

export interface HttpOptions {
  readonly url: ServerAddress;
  readonly apiKey: string | null;
  /** Default 4096: every rollout in its model call holds a connection. */
  readonly maxConnections?: number;
  /** First pause before a retry, milliseconds; doubles up to 30 s, with jitter. Default 100. */
  readonly backoffMs?: number;
}
export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  /** From the root: `/api/v1/asample`. */
  readonly path: string;
  /** JSON, as text or as bytes. */
  readonly body?: RequestBody;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** How long failures in a row are waited out, milliseconds; 0 = the first one is final. */
  readonly outageMs: number;
  /** Default: no limit, the server works as long as it needs. A late answer is a failure like a lost connection. */
  readonly answerWithinMs?: number;
  /** A poll that the server may hold open: no answer within this means "not ready yet". */
  readonly pollWithinMs?: number;
  /** Looks whether the server is there: never held back because others found it away. */
  readonly probe?: boolean;
  /** Hears when the request is held up. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}
/** What a call ends with once retries are over. */
export type Settled = Extract<Answer, { is: "done" | "pending" | "lost" }>;

/** A server that asks for more patience than this is reported instead of obeyed. */
export const maxRetryAfterMs = 60_000;

const policy: RetryPolicy = {
  maxTries: Number.POSITIVE_INFINITY,
  tryMs: null,
  totalMs: null,
  outageMs: 0,
  firstPauseMs: 100,
  maxPauseMs: 30_000,
  maxRetryAfterMs,
};
/** Short windows: a model server that restarts is to be found again at once. */
const breaker = { threshold: 8, openMs: 500, maxOpenMs: 2_000 };

export class TinkerHttp {
  readonly #server: ReturnType<typeof openServer>;
  readonly #secrets: readonly string[];
  readonly #calls: ResilientCalls<{ readonly name: string }>;

  constructor(options: HttpOptions) {
    const { url, apiKey, maxConnections, backoffMs } = options;
    const headers: Record<string, string> = apiKey === null ? {} : { "x-api-key": apiKey };
    const settings = { headers, ...(maxConnections === undefined ? {} : { maxConnections }) };
    this.#server = openServer(url, settings);
    this.#secrets = [apiKey ?? "", typeof url === "string" ? decodeURIComponent(new URL(url).password) : ""];
    this.#calls = new ResilientCalls({
      targets: [{ name: this.#server.shownUrl }],
      policy: { ...policy, firstPauseMs: backoffMs ?? policy.firstPauseMs },
      breaker,
      retryableAfter: true,
    });
  }

  /** Sends until it is answered for good. @throws BoundaryError("model-server"), FencedError, or the signal's reason */
  call(call: Call): Promise<Settled> {
    return this.#calls.call({
      affinityKey: "",
      policy: { outageMs: call.outageMs },
      ...(call.signal === undefined ? {} : { signal: call.signal }),
      probe: call.probe ?? false,
      onWait: call.onWait,
      attempt: async () => settled(await this.#once(call)),
    });
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
  close(): Promise<void> {
    return this.#server.close();
  }

  async #once(call: Call): Promise<Answer> {
    call.signal?.throwIfAborted();
    try {
      const { method, path, body, headers = {}, signal } = call;
      const answer = await this.#server.send({
        method,
        path,
        headers,
        signal,
        ...(body === undefined ? {} : { body }),
        headersWithinMs: call.pollWithinMs ?? call.answerWithinMs ?? 0,
      });
      const { status, retryAfter } = answer;
      const text = hideSecrets(await answer.body.text(), this.#secrets);
      return classify({ status, retryAfter, text }, nameOf(call), Date.now());
    } catch (cause) {
      if (call.signal?.aborted) throw call.signal.reason;
      if (call.pollWithinMs !== undefined && cause instanceof errors.HeadersTimeoutError) return { is: "pending" };
      const message = `${nameOf(call)}: ${cause instanceof Error ? cause.message : String(cause)}`;
      const error = new BoundaryError("model-server", "unreachable", message, { cause, retryable: true });
      return { is: "retry", error, retryAfterMs: null };
    }
  }
}

function settled(answer: Answer): Try<Settled> {
  if (answer.is === "failed") return answer;
  if (answer.is !== "retry") return { is: "done", value: answer };
  return { ...answer, down: answer.error.code === "unreachable" };
}

const nameOf = (call: Call): string => `${call.method} ${call.path}`;
