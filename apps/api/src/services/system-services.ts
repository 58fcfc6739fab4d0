/** What is alive, and API tokens. */
import { sep } from "node:path";
import { createToken, listTokens, revokeToken } from "@rolldeck/db/auth/api-tokens";
import { createSignInCode } from "@rolldeck/db/auth/sign-in-codes";
import type { PrismaClient } from "@rolldeck/db/prisma";
import { readSystem } from "@rolldeck/db/reads/read-system";
import type { Queryable } from "@rolldeck/db/reads/rows";
import manifest from "../../package.json" with { type: "json" };
import type { Services, TokenServices } from "../services.ts";

export function createTokenServices(db: Queryable, prisma: PrismaClient): TokenServices {
  return {
    list: () => listTokens(prisma),
    create: (input) => createToken(prisma, input),
    revoke: ({ tokenId }) => revokeToken(prisma, tokenId),
    async signInCode() {
      const { code, expiresAt } = await createSignInCode(db);
      return { code, path: `/sign-in?code=${code}`, expiresAt };
    },
  };
}

export function createSystemServices(options: {
  readonly db: Queryable;
  readonly prisma: PrismaClient;
  readonly dataFolder: string;
  readonly queue: { readonly kind: "postgres" | "redis"; readonly ok: () => boolean };
}): Services["system"] {
  return {
    async state() {
      const { databaseFolder, ...rows } = await readSystem(options.db, options.prisma);
      const embedded = databaseFolder?.startsWith(options.dataFolder + sep) ?? false;
      return {
        version: manifest.version,
        // Answering at all means the database answered.
        database: { kind: embedded ? "embedded" : "external", ok: true },
        queue: { kind: options.queue.kind, ok: options.queue.ok() },
        ...rows,
      };
    },
  };
}
