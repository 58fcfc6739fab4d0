/**
 * What an OpenAI-compatible server means when it does not answer with a sample. Pure: the one place that reads its statuses and
 * error bodies, whether they come as a status, inside HTTP 200, or in the middle of a stream.
 *
 * Invariant: what is repeated is 408, 409, 429 and 5xx only. Codes are this wire's own where the worker would otherwise wait
 * for a model of ours to come back: a hosted server's 404 is a mistake in a config, not a restart.
 */

import { BoundaryError } from "@rolldeck/contracts/errors";
import { jsonOrUndefined } from "@rolldeck/contracts/json-or-undefined";
import { z } from "zod";
import type { Retry } from "../resilient/retry-policy.ts";
import { saysContextFull } from "../says-context-full.ts";

export interface Refusal {
  /** Absent for an error inside an answer that began well. */
  readonly status: number | null;
  readonly retryAfterMs: number | null;
  /** JSON or any text. */
  readonly text: string;
}
export type Refused = Retry | { readonly is: "failed"; readonly error: BoundaryError };

const Detail = z.object({
  message: z.string().nullish(),
  type: z.string().nullish(),
  code: z.union([z.string(), z.number()]).nullish(),
});
/** OpenAI and vLLM nest it, SGLang does not, FastAPI says `detail`, some gateways only a text. */
const Envelope = z.union([
  z.object({ error: Detail }),
  z.object({ error: z.string() }).transform(({ error }) => ({ error: { message: error } })),
  z
    .object({ object: z.literal("error") })
    .and(Detail)
    .transform((error) => ({ error })),
  z.object({ detail: z.unknown() }).transform(({ detail }) => ({ error: { message: textOf(detail) } })),
]);
type Said = { readonly message: string; readonly type: string; readonly code: string; readonly status: number | null };

/** The error in an answer's JSON, or null when it holds none. */
export function errorInside(json: unknown): string | null {
  if (typeof json !== "object" || json === null) return null;
  const holds =
    ("error" in json && json.error !== null && json.error !== undefined) ||
    ("object" in json && json.object === "error");
  return holds ? JSON.stringify(json) : null;
}

/** @param what names the request: "POST http://host/v1/completions" */
export function readRefusal(refusal: Refusal, what: string): Refused {
  const said = saidIn(refusal.text);
  const status = refusal.status ?? said.status;
  const words = [refusal.status === null ? "" : `HTTP ${refusal.status}`, said.message].filter((part) => part !== "");
  const message = `${what}: ${words.join(": ") || "an error without words"}`;
  const fail = (code: string): Refused => ({ is: "failed", error: new BoundaryError("model-server", code, message) });
  const again = (code: string, down = false): Retry => ({
    is: "retry",
    error: new BoundaryError("model-server", code, message, { retryable: true }),
    retryAfterMs: refusal.retryAfterMs,
    down,
  });
  if (
    isContextFull(said) &&
    (status === null || status === 200 || status === 400 || status === 413 || status === 422)
  ) {
    return fail("context_full");
  }
  // A quota that is used up comes as 429, and no patience brings it back.
  if (said.code === "insufficient_quota" || said.type === "insufficient_quota") return fail("quota_exceeded");
  if (status === 429) return again("rate_limited");
  if (status === 408) return again("timeout", true);
  if (status === 409) return again("refused");
  if (status === 502 || status === 503 || status === 504) return again("unreachable", true);
  if (status === null || status >= 500 || status < 400) return again("internal");
  return fail(finalCodes[status] ?? "refused");
}

const finalCodes: Readonly<Record<number, string>> = {
  400: "bad_input",
  401: "unauthorised",
  402: "payment_required",
  403: "unauthorised",
  404: "no_such_route_or_model",
  413: "too_large",
  422: "bad_input",
};

const contextCodes: ReadonlySet<string> = new Set(["context_length_exceeded", "exceed_context_size_error"]);

const isContextFull = ({ message, code, type }: Said): boolean =>
  contextCodes.has(code) || contextCodes.has(type) || saysContextFull(message);

function saidIn(text: string): Said {
  const parsed = Envelope.safeParse(jsonOrUndefined(text));
  const error = parsed.success ? parsed.data.error : { message: /^\s*\{\s*\}\s*$/.test(text) ? "" : text };
  const { message, type, code } = { type: null, code: null, ...error };
  const number = typeof code === "number" ? code : Number(code ?? Number.NaN);
  return {
    message: (message ?? "").trim().slice(0, 400),
    type: type ?? "",
    code: String(code ?? ""),
    status: Number.isInteger(number) && number >= 400 && number < 600 ? number : null,
  };
}

const textOf = (detail: unknown): string => (typeof detail === "string" ? detail : JSON.stringify(detail ?? ""));
