/** Browser sessions of the owner. The cookie holds the secret, the row its hash. */
import { z } from "zod";
import { type Queryable, readRow } from "../reads/rows.ts";
import { hashSecret, newSecret } from "./secret-text.ts";

export const sessionDays = 30;

export async function createSession(db: Queryable): Promise<{ secret: string }> {
  const secret = newSecret();
  await db.query(`delete from "sessions" where "expires_at" < now()`);
  await db.query(`insert into "sessions" ("hash", "expires_at") values ($1, now() + interval '${sessionDays} days')`, [
    hashSecret(secret),
  ]);
  return { secret };
}

export async function isSession(db: Queryable, secret: string): Promise<boolean> {
  const row = await readRow(
    db,
    z.object({ found: z.boolean() }),
    `select true as "found" from "sessions" where "hash" = $1 and "expires_at" > now()`,
    [hashSecret(secret)],
  );
  return row !== null;
}

export async function endSession(db: Queryable, secret: string): Promise<void> {
  await db.query(`delete from "sessions" where "hash" = $1`, [hashSecret(secret)]);
}
