/** API tokens: shown once, stored as a hash, revoked for good. */
import { type CreatedToken, type CreateToken, TokenInfo, tokenScopes } from "@rolldeck/contracts/api/system";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { newId } from "../new-id.ts";
import { iso, type Queryable, readRow, readRows } from "../reads/rows.ts";
import { hashSecret, newSecret } from "./secret-text.ts";

type Info = z.output<typeof TokenInfo>;
export const tokenPrefix = "rd_";

const columns = `"id" as "tokenId", "name", "scope", ${iso('"created_at"')} as "createdAt",
  ${iso('"last_used_at"')} as "lastUsedAt"`;

export async function createToken(
  db: Queryable,
  { name, scope }: z.output<typeof CreateToken>,
): Promise<z.output<typeof CreatedToken>> {
  const secret = newSecret(tokenPrefix);
  const row = await readRow(
    db,
    TokenInfo,
    `insert into "api_tokens" ("id", "name", "hash", "scope") values ($1, $2, $3, $4) returning ${columns}`,
    [newId(), name, hashSecret(secret), scope],
  );
  if (!row) throw new Error("an insert returned no row");
  return { ...row, secret };
}

/** Tokens that still work, newest first. */
export const listTokens = (db: Queryable): Promise<Info[]> =>
  readRows(
    db,
    TokenInfo,
    `select ${columns} from "api_tokens" where "revoked_at" is null order by "created_at" desc, "id" desc limit 1000`,
  );

/** @throws NotFoundError when there is no such token, or it was revoked before */
export async function revokeToken(db: Queryable, tokenId: string): Promise<Info> {
  const row = await readRow(
    db,
    TokenInfo,
    `update "api_tokens" set "revoked_at" = now() where "id" = $1 and "revoked_at" is null returning ${columns}`,
    [tokenId],
  );
  if (!row) throw new NotFoundError("token", tokenId);
  return row;
}

const Holder = z.object({ tokenId: z.string(), name: z.string(), scope: z.enum(tokenScopes) });
export type TokenHolder = z.infer<typeof Holder>;

/** Whose secret this is. `last_used_at` is written at most once a minute: reads must not become writes. */
export async function findTokenHolder(db: Queryable, secret: string): Promise<TokenHolder | null> {
  const hash = hashSecret(secret);
  const row = await readRow(
    db,
    Holder.extend({ fresh: z.boolean() }),
    `select "id" as "tokenId", "name", "scope", coalesce("last_used_at" > now() - interval '1 minute', false) as "fresh"
     from "api_tokens" where "hash" = $1 and "revoked_at" is null`,
    [hash],
  );
  if (!row) return null;
  const { fresh, ...holder } = row;
  if (!fresh) await db.query(`update "api_tokens" set "last_used_at" = now() where "hash" = $1`, [hash]);
  return holder;
}
