import { NotFoundError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { createPrisma, type PrismaClient } from "../prisma.ts";
import { createToken, findTokenHolder, listTokens, revokeToken } from "./api-tokens.ts";
import { claimKey, releaseKey, storeReply } from "./idempotency-keys.ts";
import { hashSecret, sameSecret } from "./secret-text.ts";
import { createSession, endSession, isSession } from "./sessions.ts";
import { createSignInCode, useSignInCode } from "./sign-in-codes.ts";

let database: TestDatabase;
let prisma: PrismaClient;
beforeAll(async () => {
  database = await createTestDatabase();
  prisma = createPrisma(database.pool);
});
afterAll(async () => {
  await prisma.$disconnect();
  await database.drop();
});

const storedText = async (): Promise<string> => {
  const tables = ["sign_in_codes", "sessions", "api_tokens"];
  const rows = await Promise.all(tables.map((table) => database.pool.query(`select * from "${table}"`)));
  return JSON.stringify(rows.map((result) => result.rows));
};

describe("secrets", () => {
  it("are compared whole and stored only as hashes", async () => {
    expect(sameSecret("abc", "abc")).toBe(true);
    expect(sameSecret("abc", "abcd")).toBe(false);
    const { code } = await createSignInCode(database.pool);
    const { secret } = await createSession(database.pool);
    const token = await createToken(prisma, { name: "ci", scope: "read" });
    const stored = await storedText();
    for (const text of [code, secret, token.secret]) {
      expect(stored).not.toContain(text);
      expect(stored).toContain(hashSecret(text));
    }
  });
});

describe("sign-in codes", () => {
  it("work once, even when presented many times at once", async () => {
    const { code } = await createSignInCode(database.pool);
    const used = await Promise.all(Array.from({ length: 8 }, () => useSignInCode(database.pool, code)));
    expect(used.filter(Boolean)).toHaveLength(1);
    expect(await useSignInCode(database.pool, code)).toBe(false);
  });
  it("end after their time", async () => {
    const { code } = await createSignInCode(database.pool);
    await database.pool.query(`update "sign_in_codes" set "expires_at" = now() where "hash" = $1`, [hashSecret(code)]);
    expect(await useSignInCode(database.pool, code)).toBe(false);
  });
});

describe("sessions", () => {
  it("hold until ended or expired", async () => {
    const { secret } = await createSession(database.pool);
    expect(await isSession(database.pool, secret)).toBe(true);
    expect(await isSession(database.pool, `${secret}x`)).toBe(false);
    await endSession(database.pool, secret);
    expect(await isSession(database.pool, secret)).toBe(false);
  });
});

describe("API tokens", () => {
  it("are found by secret until revoked, and revoked once", async () => {
    const { secret, tokenId } = await createToken(prisma, { name: "laptop", scope: "write" });
    expect(await findTokenHolder(prisma, secret)).toEqual({ tokenId, name: "laptop", scope: "write" });
    const listed = (await listTokens(prisma)).find((token) => token.tokenId === tokenId);
    expect(listed?.lastUsedAt).not.toBeNull();
    await revokeToken(prisma, tokenId);
    expect(await findTokenHolder(prisma, secret)).toBeNull();
    await expect(revokeToken(prisma, tokenId)).rejects.toBeInstanceOf(NotFoundError);
  });
});

describe("idempotency keys", () => {
  const request = { principal: "owner", route: "POST /runs", key: "k1", bodyHash: "h1" };
  it("let one of many claim, tell the others in flight, then repeat the answer", async () => {
    const claims = await Promise.all(Array.from({ length: 6 }, () => claimKey(database.pool, request)));
    expect(claims.filter((claim) => claim.state === "claimed")).toHaveLength(1);
    expect(claims.filter((claim) => claim.state === "in-flight")).toHaveLength(5);
    const reply = { status: 201, body: JSON.stringify({ odd: "\0\ud800" }), headers: { location: "/x" } };
    await storeReply(database.pool, request, reply);
    expect(await claimKey(database.pool, request)).toEqual({ state: "done", reply });
    expect(await claimKey(database.pool, { ...request, bodyHash: "h2" })).toEqual({ state: "mismatch" });
    expect(await claimKey(database.pool, { ...request, principal: "token:1" })).toEqual({ state: "claimed" });
  });
  it("are free again when let go, or when their process died", async () => {
    const second = { ...request, key: "k2" };
    await claimKey(database.pool, second);
    await releaseKey(database.pool, second);
    expect(await claimKey(database.pool, second)).toEqual({ state: "claimed" });
    await database.pool.query(`update "idempotency_keys" set "created_at" = now() - interval '5 minutes'`);
    expect(await claimKey(database.pool, { ...second, bodyHash: "h3" })).toEqual({ state: "claimed" });
  });
});
