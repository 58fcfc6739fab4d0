/** What is alive, and API tokens. */
import { sep } from "node:path";
import { createToken, listTokens, revokeToken } from "@rolldeck/db/auth/api-tokens";
import { createSignInCode } from "@rolldeck/db/auth/sign-in-codes";
import { readSystem } from "@rolldeck/db/reads/read-system";
import type { Queryable } from "@rolldeck/db/reads/rows";
import manifest from "../../package.json" with { type: "json" };
import type { Services, TokenServices } from "../services.ts";

export function createTokenServices(db: Queryable): TokenServices {
  return {
    list: () => listTokens(db),
    create: (input) => createToken(db, input),
    revoke: ({ tokenId }) => revokeToken(db, tokenId),
    async signInCode() {
      const { code, expiresAt } = await createSignInCode(db);
      return { code, path: `/sign-in?code=${code}`, expiresAt };
    },
  };
}

export function createSystemServices(options: {
  readonly db: Queryable;
  readonly dataFolder: string;
  readonly queue: { readonly kind: "postgres" | "redis"; readonly ok: () => boolean };
}): Services["system"] {
  return {
    async state() {
      const { databaseFolder, ...rows } = await readSystem(options.db);
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
