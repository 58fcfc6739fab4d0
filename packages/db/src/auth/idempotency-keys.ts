/**
 * Requests done once per (principal, route, key). The first claims the row, does the work and stores its answer; a
 * repetition gets that answer, another body is a mismatch, and while the first is under way the key is in flight.
 */
import { z } from "zod";
import { type Queryable, readRow } from "../reads/rows.ts";

/** A claim this old without an answer belongs to a process that died: the next request takes it over. */
const abandonedS = 60;
const keptHours = 24;

export interface KeyedRequest {
  readonly principal: string;
  readonly route: string;
  readonly key: string;
  /** Hash of everything that makes two requests the same. */
  readonly bodyHash: string;
}
export interface StoredReply {
  readonly status: number;
  /** The body as text: an answer is repeated byte for byte. null when it must not be stored (it held a secret). */
  readonly body: string | null;
  readonly headers: Readonly<Record<string, string>>;
}
export type KeyClaim =
  | { readonly state: "claimed" }
  | { readonly state: "done"; readonly reply: StoredReply }
  | { readonly state: "mismatch" }
  | { readonly state: "in-flight" };

const Row = z.object({
  mine: z.boolean(),
  bodyHash: z.string(),
  status: z.int().nullable(),
  response: z.object({ body: z.string().nullable(), headers: z.record(z.string(), z.string()) }).nullable(),
});

export async function claimKey(db: Queryable, request: KeyedRequest): Promise<KeyClaim> {
  const values = [request.principal, request.route, request.key, request.bodyHash];
  const row = await readRow(
    db,
    Row,
    `with claimed as (
       insert into "idempotency_keys" ("principal", "route", "key", "body_hash") values ($1, $2, $3, $4)
       on conflict ("principal", "route", "key") do update set "created_at" = now(), "body_hash" = $4
         where "idempotency_keys"."status" is null
           and "idempotency_keys"."created_at" < now() - interval '${abandonedS} seconds'
       returning true as "mine", "body_hash" as "bodyHash", "status", null::jsonb as "response")
     select * from claimed
     union all
     select false, "body_hash", "status", "response" from "idempotency_keys"
     where "principal" = $1 and "route" = $2 and "key" = $3 and not exists (select 1 from claimed)`,
    values,
  );
  // The row of a claim that was let go between insert and read: the caller may simply try again.
  if (!row) return { state: "in-flight" };
  if (row.mine) return { state: "claimed" };
  if (row.bodyHash !== request.bodyHash) return { state: "mismatch" };
  if (row.status === null || row.response === null) return { state: "in-flight" };
  return { state: "done", reply: { status: row.status, ...row.response } };
}

export async function storeReply(db: Queryable, request: KeyedRequest, reply: StoredReply): Promise<void> {
  await db.query(
    `update "idempotency_keys" set "status" = $4, "response" = $5
     where "principal" = $1 and "route" = $2 and "key" = $3`,
    // The body is JSON text inside JSON: what jsonb would refuse (an escaped NUL) is escaped twice and passes.
    [
      request.principal,
      request.route,
      request.key,
      reply.status,
      JSON.stringify({ body: reply.body, headers: reply.headers }),
    ],
  );
}

/** The work failed by our own fault: the same key may be tried again. */
export async function releaseKey(db: Queryable, request: KeyedRequest): Promise<void> {
  await db.query(
    `delete from "idempotency_keys" where "principal" = $1 and "route" = $2 and "key" = $3 and "status" is null`,
    [request.principal, request.route, request.key],
  );
}

export async function forgetOldKeys(db: Queryable): Promise<void> {
  await db.query(`delete from "idempotency_keys" where "created_at" < now() - interval '${keptHours} hours'`);
}
