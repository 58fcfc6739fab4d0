/** API tokens: shown once, stored as a hash, revoked for good. */
import {
  type CreatedToken,
  type CreateToken,
  type TokenInfo,
  type TokenScope,
  tokenScopes,
} from "@rolldeck/contracts/api/system";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { newId } from "../new-id.ts";
import type { PrismaClient } from "../prisma.ts";
import { hashSecret, newSecret } from "./secret-text.ts";

type Info = z.output<typeof TokenInfo>;
export const tokenPrefix = "rd_";
/** Reads must not become writes: the time of the last use is kept to the minute. */
const lastUsedMs = 60_000;

const Scope = z.enum(tokenScopes);
const shown = { id: true, name: true, scope: true, createdAt: true, lastUsedAt: true } as const;

interface TokenRow {
  readonly id: string;
  readonly name: string;
  readonly scope: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
}
const tokenInfo = ({ id, name, scope, createdAt, lastUsedAt }: TokenRow): Info => ({
  tokenId: id,
  name,
  scope: Scope.parse(scope),
  createdAt: createdAt.toISOString(),
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
});

export async function createToken(
  prisma: PrismaClient,
  { name, scope }: z.output<typeof CreateToken>,
): Promise<z.output<typeof CreatedToken>> {
  const secret = newSecret(tokenPrefix);
  const data = { id: newId(), name, scope, hash: hashSecret(secret) };
  return { ...tokenInfo(await prisma.apiToken.create({ data, select: shown })), secret };
}

/** Tokens that still work, newest first. */
export async function listTokens(prisma: PrismaClient): Promise<Info[]> {
  const rows = await prisma.apiToken.findMany({
    where: { revokedAt: null },
    select: shown,
    orderBy: [{ createdAt: "desc" }, { id: "desc" }],
    take: 1000,
  });
  return rows.map(tokenInfo);
}

/** @throws NotFoundError when there is no such token, or it was revoked before */
export async function revokeToken(prisma: PrismaClient, tokenId: string): Promise<Info> {
  const revoked = await prisma.apiToken.updateManyAndReturn({
    where: { id: tokenId, revokedAt: null },
    data: { revokedAt: new Date() },
    select: shown,
  });
  const [row] = revoked;
  if (!row) throw new NotFoundError("token", tokenId);
  return tokenInfo(row);
}

export interface TokenHolder {
  readonly tokenId: string;
  readonly name: string;
  readonly scope: TokenScope;
}

/** Whose secret this is; null when nobody's (any more). */
export async function findTokenHolder(prisma: PrismaClient, secret: string): Promise<TokenHolder | null> {
  const row = await prisma.apiToken.findUnique({ where: { hash: hashSecret(secret), revokedAt: null }, select: shown });
  if (!row) return null;
  const now = new Date();
  if ((row.lastUsedAt?.getTime() ?? 0) < now.getTime() - lastUsedMs)
    await prisma.apiToken.updateMany({ where: { id: row.id }, data: { lastUsedAt: now } });
  return { tokenId: row.id, name: row.name, scope: Scope.parse(row.scope) };
}
