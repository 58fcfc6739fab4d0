/** What an HTTP answer of a Tinker server means for whoever asked. Pure: the one place that reads statuses. */

import { BoundaryError, FencedError } from "@rolldeck/contracts/errors";
import { jsonOrUndefined } from "@rolldeck/contracts/json-or-undefined";
import { FutureFailure, TryAgain, WorkerError } from "@rolldeck/contracts/wire/tinker";
import { parseRetryAfter } from "../resilient/retry-after.ts";
import { saysContextFull } from "../says-context-full.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

export type Answer =
  | { readonly is: "done"; readonly json: unknown }
  /** A future that is not ready: ask again. */
  | { readonly is: "pending" }
  /** A future the server no longer knows: send the original request again. */
  | { readonly is: "lost" }
  /** Trying the same again may help, not before `retryAfterMs` when that is given. */
  | { readonly is: "retry"; readonly error: BoundaryError; readonly retryAfterMs: number | null }
  | { readonly is: "failed"; readonly error: Error };

/** @param what names the request in messages: "POST /api/v1/asample"  @param nowMs wall clock, for Retry-After dates */
export function classify(answer: HttpAnswer, what: string, nowMs: number): Answer {
  const { status, text } = answer;
  if (status === 408) return { is: "pending" };
  if (status === 410) return { is: "lost" };
  const json = jsonOrUndefined(text);
  if (status >= 200 && status < 300) return classifyBody(json, text, what);
  const error = typedError(status, json, what);
  // Out of memory comes again with the same request; anything else behind a 5xx may be over in a moment.
  const mayPass = status === 429 || status >= 500;
  if (error instanceof FencedError || !mayPass || error.code === "oom") return { is: "failed", error };
  return { is: "retry", error, retryAfterMs: parseRetryAfter(answer.retryAfter, nowMs) };
}

function classifyBody(json: unknown, text: string, what: string): Answer {
  if (json === undefined) {
    // No content is an answer; a cut or foreign body is a broken server.
    if (text.trim() === "") return { is: "done", json: {} };
    const error = new BoundaryError("model-server", "bad_answer", `${what}: the answer is not JSON`, {
      retryable: true,
    });
    return { is: "retry", error, retryAfterMs: null };
  }
  if (TryAgain.safeParse(json).success) return { is: "pending" };
  const failure = FutureFailure.safeParse(json);
  if (failure.success) {
    const retryable = failure.data.category === "server";
    return { is: "failed", error: withCode(json, what, failure.data.error, "future_failed", retryable) };
  }
  return { is: "done", json };
}

const codeByStatus: Readonly<Record<number, string>> = {
  400: "bad_input",
  401: "unauthorised",
  402: "payment_required",
  403: "unauthorised",
  404: "not_found",
  409: "conflict",
  413: "too_large",
  422: "bad_input",
  429: "busy",
};

function typedError(status: number, json: unknown, what: string): BoundaryError | FencedError {
  const detail = detailOf(json) ?? `HTTP ${status}`;
  const fallback = codeByStatus[status] ?? (status >= 500 ? "internal" : "refused");
  return withCode(json, what, detail, fallback, status === 429 || status >= 500);
}

function withCode(
  json: unknown,
  what: string,
  detail: string,
  fallback: string,
  retryable: boolean,
): BoundaryError | FencedError {
  const ours = WorkerError.safeParse(json);
  if (ours.success && ours.data.code === "fenced") return new FencedError(`the model (${what})`);
  const refused = ours.success ? ours.data.code : fallback;
  const named = ours.success ? (ours.data.field ?? "") : "";
  const code = refused === "bad_input" ? meantBy(`${named} ${detail}`.trim()) : refused;
  const field = named === "" ? "" : ` (${named})`;
  return new BoundaryError("model-server", code, `${what}: ${detail.slice(0, 500)}${field}`, { retryable });
}

/** What servers say in words only. */
function meantBy(detail: string): string {
  if (saysContextFull(detail)) return "context_full";
  // SkyRL of a file that is no longer there, and of a model that it had before it restarted.
  if (/^Training checkpoint not found\b/.test(detail)) return "not_found";
  return /^Model \S+ not loaded\b/.test(detail) ? "unknown_model" : "bad_input";
}

/** `detail` is a text in our worker's answers and may be a list of issues in others'. */
function detailOf(json: unknown): string | undefined {
  if (typeof json !== "object" || json === null || !("detail" in json)) return undefined;
  return typeof json.detail === "string" ? json.detail : JSON.stringify(json.detail);
}
