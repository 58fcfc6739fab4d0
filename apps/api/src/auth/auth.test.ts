import { stat } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { Problem } from "@rolldeck/contracts/api/problems";
import { CreatedToken, SignInCode } from "@rolldeck/contracts/api/system";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonPost, smallConfig, startTestApi, type TestApi } from "../../testing/start-api.ts";
import { ownerTokenFile } from "../owner-token.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ allowedHosts: ["deck.example.org"] });
});
afterAll(() => api.close());

const anonymous = (path: string, init: RequestInit = {}) => fetch(`${api.url}${path}`, { redirect: "manual", ...init });
const problem = async (response: Response) => Problem.parse(await response.json());
const newCode = async () =>
  SignInCode.parse(await (await api.fetch("/api/v1/sign-in-codes", { method: "POST" })).json());

/** fetch may not set Host: the raw client may. */
function withHeaders(path: string, headers: Record<string, string>, method = "GET"): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(`${api.url}${path}`, { method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end();
  });
}
const asOwner = () => ({ authorization: `Bearer ${api.ownerToken}` });

/** First line of the answer to an upgrade. */
function upgrade(path: string, headers: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(api.port, "127.0.0.1");
    const lines = Object.entries({
      Host: `127.0.0.1:${api.port}`,
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      "Sec-WebSocket-Version": "13",
      ...headers,
    });
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}`).join("\r\n")}\r\n\r\n`);
    socket.once("data", (data) => {
      socket.destroy();
      resolve(String(data).split("\r\n")[0] ?? "");
    });
    socket.once("error", reject);
  });
}

describe("the owner token", () => {
  it("is a file only its owner can read", async () => {
    expect((await stat(ownerTokenFile(api.dataFolder))).mode & 0o777).toBe(0o600);
    expect(api.ownerToken.length).toBeGreaterThan(30);
  });
});

describe("Host and Origin", () => {
  it("refuses a forged Host everywhere, even with the owner token", async () => {
    for (const path of [
      "/healthz",
      "/api/v1/runs",
      "/api/trpc/auth.me",
      "/sign-in",
      "/",
      "/socket.io/?EIO=4&transport=polling",
    ])
      expect(await withHeaders(path, { ...asOwner(), host: "evil.example.org" })).toBe(403);
    expect(await withHeaders("/api/v1/runs", { ...asOwner(), host: `deck.example.org` })).toBe(200);
    expect(await withHeaders("/api/v1/runs", { ...asOwner(), host: `localhost:${api.port}` })).toBe(200);
    expect(await withHeaders("/api/v1/runs", { ...asOwner(), host: "127.0.0.1.evil.org" })).toBe(403);
  });

  it("refuses a foreign Origin on whatever changes something, even with the owner token", async () => {
    const own = { ...asOwner(), host: `127.0.0.1:${api.port}` };
    for (const origin of [
      "http://evil.example.org",
      "null",
      `http://127.0.0.1:${api.port + 1}`,
      "file://",
      `http://127.0.0.1:${api.port}@evil.org`,
    ])
      expect(await withHeaders("/api/v1/sign-in-codes", { ...own, origin }, "POST")).toBe(403);
    expect(await withHeaders("/api/v1/sign-in-codes", { ...own, "sec-fetch-site": "same-site" }, "POST")).toBe(403);
    expect(await withHeaders("/api/v1/sign-in-codes", { ...own, origin: `http://127.0.0.1:${api.port}` }, "POST")).toBe(
      201,
    );
  });

  it("refuses foreign, nameless and unknown upgrades", async () => {
    const path = "/socket.io/?EIO=4&transport=websocket";
    expect(await upgrade(path, { Origin: "http://evil.example.org" })).toContain("403");
    expect(await upgrade(path, { Host: "evil.example.org" })).toContain("403");
    expect(await upgrade("/_next/webpack-hmr", {})).toContain("401");
    expect(await upgrade("/_next/webpack-hmr", { Authorization: `Bearer ${api.ownerToken}` })).toContain("404");
    expect(await upgrade(path, { Origin: `http://127.0.0.1:${api.port}` })).toContain("101");
  });
});

describe("without a principal", () => {
  it.each([
    "/api/v1/runs",
    "/api/v1/system",
    "/api/v1/nothing",
    "/api/trpc/runs.list",
    "/metrics",
    "/api/v1/rollouts/aaaaaaaa",
  ])("%s is refused", async (path) => {
    const response = await anonymous(path);
    expect(response.status).toBe(401);
  });
  it("loopback grants nothing, a wrong token neither, even beside a good cookie", async () => {
    const cookie = await signedInCookie();
    expect((await anonymous("/api/v1/me", { headers: { cookie } })).status).toBe(200);
    expect((await anonymous("/api/v1/me", { headers: { cookie, authorization: "Bearer wrong" } })).status).toBe(401);
    expect((await anonymous("/api/v1/me", { headers: { authorization: `Basic ${btoa("a:b")}` } })).status).toBe(401);
    expect((await anonymous("/api/v1/me", { headers: { authorization: `Bearer ${"x".repeat(5000)}` } })).status).toBe(
      401,
    );
  });
  it("a page leads to sign-in and back, anything else is a 401", async () => {
    const page = await anonymous("/runs/abc?tab=1", { headers: { accept: "text/html" } });
    expect(page.status).toBe(303);
    expect(page.headers.get("location")).toBe("/sign-in?next=%2Fruns%2Fabc%3Ftab%3D1");
    expect((await anonymous("/_next/static/x.js")).status).toBe(401);
    const linked = await anonymous("/runs/abc", { headers: { accept: "text/html", "sec-fetch-site": "cross-site" } });
    expect(await linked.text()).toContain('url=/runs/abc"');
  });
  it("only the API's description and health are open", async () => {
    expect((await anonymous("/healthz")).status).toBe(200);
    expect((await anonymous("/api/v1/openapi.json")).status).toBe(200);
  });
});

async function signedInCookie(): Promise<string> {
  const { path } = await newCode();
  const response = await anonymous(path);
  return response.headers.get("set-cookie")?.split(";")[0] ?? "";
}

describe("sign-in", () => {
  it("exchanges a code once for a strict, HttpOnly cookie", async () => {
    const { path } = await newCode();
    const first = await anonymous(`${path}&next=/runs`);
    expect(first.status).toBe(303);
    expect(first.headers.get("location")).toBe("/runs");
    expect(first.headers.get("set-cookie")).toMatch(/HttpOnly; SameSite=Strict/);
    const replayed = await anonymous(path);
    expect(replayed.status).toBe(401);
    expect(replayed.headers.get("set-cookie")).toBeNull();
    const text = await replayed.text();
    expect(text).toContain("npx rolldeck login-url");
    expect(text).not.toContain(path.split("=")[1]);
  });
  it("leads nowhere but into this server", async () => {
    for (const next of [
      "//evil.org",
      "https://evil.org",
      "/\\evil.org",
      "javascript:alert(1)",
      "/a\nb",
      "/sign-in?code=x",
    ]) {
      const { path } = await newCode();
      const response = await anonymous(`${path}&next=${encodeURIComponent(next)}`);
      expect(response.headers.get("location")).toBe("/");
    }
  });
  it("shows what to do, and nothing that a stranger put into the address as markup", async () => {
    const page = await (await anonymous(`/sign-in?next=${encodeURIComponent('/"><script>x</script>')}`)).text();
    expect(page).toContain("npx rolldeck login-url");
    expect(page).not.toContain("<script>");
  });
  it("ends with sign-out", async () => {
    const cookie = await signedInCookie();
    expect((await anonymous("/sign-out", { method: "POST", headers: { cookie } })).status).toBe(303);
    expect((await anonymous("/api/v1/me", { headers: { cookie } })).status).toBe(401);
  });
  it("a link checker's HEAD leaves the code alone", async () => {
    const { path } = await newCode();
    expect((await anonymous(path, { method: "HEAD" })).status).toBe(405);
    expect((await anonymous(path)).status).toBe(303);
  });
});

describe("API tokens", () => {
  const make = async (scope: "read" | "write") =>
    CreatedToken.parse(await (await api.fetch("/api/v1/tokens", jsonPost({ name: `ci ${scope}`, scope }))).json());

  it("read tokens read and check, and write nothing", async () => {
    const { secret } = await make("read");
    const headers = { authorization: `Bearer ${secret}` };
    expect((await anonymous("/api/v1/runs", { headers })).status).toBe(200);
    expect((await anonymous("/api/v1/runs/check", jsonPost({ config: smallConfig }, headers))).status).toBe(200);
    const refused = await anonymous("/api/v1/runs", jsonPost({ config: smallConfig }, headers));
    expect(await problem(refused)).toMatchObject({ status: 403, type: "urn:rolldeck:problem:not-allowed" });
    expect((await anonymous("/api/trpc/runs.launch", jsonPost({ config: smallConfig }, headers))).status).toBe(403);
    expect((await api.database.pool.query("select 1 from runs")).rowCount).toBe(0);
  });

  it("write tokens launch, but do not mint tokens or sign-in codes", async () => {
    const { secret, tokenId } = await make("write");
    const headers = { authorization: `Bearer ${secret}` };
    expect((await anonymous("/api/v1/runs", jsonPost({ config: smallConfig }, headers))).status).toBe(201);
    for (const path of ["/api/v1/tokens", "/api/v1/sign-in-codes"])
      expect((await anonymous(path, jsonPost({ name: "x" }, headers))).status).toBe(403);
    expect((await anonymous("/api/trpc/auth.createToken", jsonPost({ name: "x" }, headers))).status).toBe(403);
    expect((await api.fetch(`/api/v1/tokens/${tokenId}`, { method: "DELETE" })).status).toBe(200);
    expect((await anonymous("/api/v1/runs", { headers })).status).toBe(401);
    expect((await api.fetch(`/api/v1/tokens/${tokenId}`, { method: "DELETE" })).status).toBe(404);
  });

  it("are shown once, and a repeated request does not show them again", async () => {
    const init = jsonPost({ name: "once" }, { "idempotency-key": "token-1" });
    const first = CreatedToken.parse(await (await api.fetch("/api/v1/tokens", init)).json());
    expect((await api.fetch("/api/v1/tokens", init)).status).toBe(409);
    const { rows } = await api.database.pool.query("select * from idempotency_keys");
    expect(JSON.stringify(rows)).not.toContain(first.secret);
    expect(JSON.stringify(await (await api.fetch("/api/v1/tokens")).json())).not.toContain(first.secret);
  });

  it("refuse names that could not be stored", async () => {
    const response = await api.fetch("/api/v1/tokens", jsonPost({ name: "a\0b" }));
    expect((await problem(response)).errors?.[0]?.path).toBe("name");
  });
});
