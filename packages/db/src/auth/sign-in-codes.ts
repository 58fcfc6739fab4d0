/** One-time sign-in codes: ten minutes, single use. Whoever may write to the database or holds the owner token makes one. */
import { z } from "zod";
import { iso, type Queryable, readRow, readRows } from "../reads/rows.ts";
import { hashSecret, newSecret } from "./secret-text.ts";

export const codeMinutes = 10;

export async function createSignInCode(db: Queryable): Promise<{ code: string; expiresAt: string }> {
  const code = newSecret();
  await db.query(`delete from "sign_in_codes" where "expires_at" < now() - interval '1 day'`);
  const row = await readRow(
    db,
    z.object({ expiresAt: z.string() }),
    `insert into "sign_in_codes" ("hash", "expires_at") values ($1, now() + interval '${codeMinutes} minutes')
     returning ${iso('"expires_at"')} as "expiresAt"`,
    [hashSecret(code)],
  );
  return { code, expiresAt: row?.expiresAt ?? "" };
}

/** Uses a code up. Of two that present it at once, one gets true. */
export async function useSignInCode(db: Queryable, code: string): Promise<boolean> {
  const used = await readRows(
    db,
    z.object({}),
    `update "sign_in_codes" set "used_at" = now()
     where "hash" = $1 and "used_at" is null and "expires_at" > now() returning "hash"`,
    [hashSecret(code)],
  );
  return used.length === 1;
}
