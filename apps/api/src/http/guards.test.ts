import type { IncomingMessage } from "node:http";
import { jsonDepth } from "@rolldeck/contracts/json-depth";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { localPath } from "./sign-in.ts";
import { refuseUnstorable } from "./storable.ts";
import { TrustedOrigin } from "./trusted-origin.ts";

const depth = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;

describe("jsonDepth", () => {
  it("is the depth of any JSON, brackets in strings aside", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(jsonDepth(JSON.stringify(value))).toBe(depth(value));
      }),
    );
  });
});

describe("localPath", () => {
  it("is always a path of this server, as a browser reads it", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.webUrl(),
          fc.string(),
          fc.string().map((text) => `/${text}`),
        ),
        (next) => {
          const path = localPath(next);
          expect(new URL(path, "http://deck.test").origin).toBe("http://deck.test");
        },
      ),
    );
    expect(localPath("/runs/x?tab=1")).toBe("/runs/x?tab=1");
  });
});

describe("refuseUnstorable", () => {
  it("names the field that holds NUL or half a surrogate pair", () => {
    expect(() => refuseUnstorable({ a: [{ b: "x\0" }] })).toThrow(/a\[0\]\.b/);
    expect(() => refuseUnstorable({ a: "\ud800" })).toThrow(/^a:/);
    expect(() => refuseUnstorable({ "a\0": 1 })).toThrow();
    expect(() => refuseUnstorable({ a: "\u{1F600}", b: [1, null, true] })).not.toThrow();
  });
});

describe("TrustedOrigin", () => {
  const request = (headers: Record<string, string>) => ({ headers }) as unknown as IncomingMessage;
  it.each([
    ["127.0.0.1", "localhost:3000", true],
    ["127.0.0.1", "LOCALHOST", true],
    ["127.0.0.1", "[::1]:3000", true],
    ["127.0.0.1", "192.168.0.9:3000", false],
    ["192.168.0.9", "192.168.0.9:3000", true],
    ["0.0.0.0", "0.0.0.0:3000", false],
    ["::1", "[::1]", true],
    ["127.0.0.1", "deck.example.org", true],
    ["127.0.0.1", "deck.example.org.evil.org", false],
    ["127.0.0.1", "port.example.org:1", false],
    ["127.0.0.1", "port.example.org:443", true],
    ["127.0.0.1", "", false],
  ])("bound to %s answers to Host %s: %s", (bound, host, allowed) => {
    const trusted = new TrustedOrigin(["deck.example.org", "port.example.org:443"], bound);
    expect(trusted.hostAllowed(request({ host }))).toBe(allowed);
  });
});
