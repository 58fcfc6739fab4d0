/**
 * Idempotency-Key: a POST with a key is done once per principal and route. A repetition gets the first answer, another body
 * a 422, and while the first is under way a 409. Our own faults (5xx) are not kept: the same key may be tried again.
 */
import { createHash } from "node:crypto";
import { claimKey, type KeyedRequest, releaseKey, storeReply } from "@rolldeck/db/auth/idempotency-keys";
import type { Queryable } from "@rolldeck/db/reads/rows";
import type { Principal } from "../principal.ts";
import { ProblemError } from "../problems.ts";
import type { Reply } from "./reply.ts";

export interface OnceRequest {
  readonly principal: Principal;
  /** Method and path. */
  readonly route: string;
  /** The header; null: do the work as often as asked. */
  readonly key: string | null;
  readonly contentType: string;
  readonly body: Uint8Array;
  /** The answer holds a secret that is shown once: it is not stored, and not shown again. */
  readonly secretReply: boolean;
}

/** Printable ASCII, as the header's draft has it. */
const keyPattern = /^[\x21-\x7e]{1,255}$/u;

/** @throws ProblemError for a bad key, a mismatch, or one in flight */
export async function once(db: Queryable, request: OnceRequest, work: () => Promise<Reply>): Promise<Reply> {
  if (request.key === null) return work();
  if (!keyPattern.test(request.key))
    throw new ProblemError("bad-input", "The Idempotency-Key must be 1 to 255 printable ASCII characters.", {
      issues: [{ path: "Idempotency-Key", message: "must be 1 to 255 printable ASCII characters without blanks" }],
    });
  const keyed: KeyedRequest = {
    principal: request.principal.id,
    route: request.route,
    key: request.key,
    bodyHash: createHash("sha256").update(`${request.contentType}\n`).update(request.body).digest("hex"),
  };
  const claim = await claimKey(db, keyed);
  if (claim.state === "mismatch")
    throw new ProblemError("idempotency-mismatch", "This Idempotency-Key came with another body before.");
  if (claim.state === "in-flight")
    throw new ProblemError("idempotency-in-flight", "The first request with this key is not answered yet.");
  if (claim.state === "done") return repeated(claim.reply);
  return doAndStore(db, keyed, request.secretReply, work);
}

function repeated(stored: { status: number; body: string | null; headers: Readonly<Record<string, string>> }): Reply {
  if (stored.body === null)
    throw new ProblemError("conflict", "The first answer held a secret, which is shown once. Use a new key.");
  return { status: stored.status, headers: { ...stored.headers, "idempotency-replayed": "true" }, body: stored.body };
}

async function doAndStore(
  db: Queryable,
  keyed: KeyedRequest,
  secretReply: boolean,
  work: () => Promise<Reply>,
): Promise<Reply> {
  let reply: Reply;
  try {
    reply = await work();
  } catch (error) {
    await releaseKey(db, keyed);
    throw error;
  }
  if (reply.status >= 500) await releaseKey(db, keyed);
  else
    await storeReply(db, keyed, {
      status: reply.status,
      headers: reply.headers,
      body: secretReply && reply.status < 300 ? null : reply.body,
    });
  return reply;
}
