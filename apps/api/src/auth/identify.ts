/**
 * Turns a request into a principal: `Authorization: Bearer` (owner token or API token), else the session cookie. A wrong
 * Bearer token is nobody, even beside a good cookie: whoever sends one means it.
 */
import type { IncomingMessage } from "node:http";
import { findTokenHolder, type TokenHolder } from "@rolldeck/db/auth/api-tokens";
import { sameSecret } from "@rolldeck/db/auth/secret-text";
import { isSession } from "@rolldeck/db/auth/sessions";
import type { PrismaClient } from "@rolldeck/db/prisma";
import type { Queryable } from "@rolldeck/db/reads/rows";
import { readCookie } from "../http/cookies.ts";
import type { Principal } from "../principal.ts";

/** @param token given beside the headers (a socket's handshake) */
export type Identify = (request: IncomingMessage, token?: string | null) => Promise<Principal | null>;

const owner: Principal = { id: "owner", name: "owner", kind: "owner", scopes: ["read", "write"] };
/** Longer than any secret of ours: hashing what a stranger sends must stay cheap. */
const maxSecretLength = 256;

export function createIdentify(options: {
  readonly db: Queryable;
  readonly prisma: PrismaClient;
  readonly ownerToken: string;
  readonly cookieName: () => string;
}): Identify {
  return async (request, token) => {
    const presented = token ?? bearer(request);
    if (presented !== null) return fromToken(options.prisma, options.ownerToken, presented);
    const session = readCookie(request, options.cookieName());
    if (session === null || session.length > maxSecretLength) return null;
    return (await isSession(options.db, session)) ? owner : null;
  };
}

function bearer(request: IncomingMessage): string | null {
  const header = request.headers.authorization;
  if (header === undefined) return null;
  return /^Bearer\s+(\S+)$/iu.exec(header)?.[1] ?? "";
}

async function fromToken(prisma: PrismaClient, ownerToken: string, presented: string): Promise<Principal | null> {
  if (presented === "" || presented.length > maxSecretLength) return null;
  if (sameSecret(presented, ownerToken)) return owner;
  const holder = await findTokenHolder(prisma, presented);
  return holder && tokenPrincipal(holder);
}

const tokenPrincipal = ({ tokenId, name, scope }: TokenHolder): Principal => ({
  id: `token:${tokenId}`,
  name,
  kind: "token",
  scopes: scope === "write" ? ["read", "write"] : ["read"],
});
