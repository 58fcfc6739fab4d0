/**
 * Whatever a client sends, the fault is the client's: no generated input on any route or procedure gives a 5xx, and nothing is
 * half-written.
 */
import { seedRun, seedStep, seedTrajectory } from "@rolldeck/db/testing/seed-run";
import { seedSandbox } from "@rolldeck/db/testing/seed-sandbox";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../testing/start-api.ts";
import { inputProperties } from "./rest/read-input.ts";
import { pathParameters } from "./rest/route.ts";
import { routes } from "./rest/routes.ts";
import { appRouter } from "./routers/app-router.ts";

let api: TestApi;
let known: string[];
beforeAll(async () => {
  api = await startTestApi();
  const runId = await seedRun(api.database.pool, { config: { stepSource: "driven" } });
  const { rolloutIds } = await seedStep(api.database.pool, runId, {
    step: 1,
    rollouts: [{ reward: 1, ending: "answer" }],
  });
  await seedTrajectory(api.database.pool, rolloutIds[0] ?? "", [{ origin: "sampled", text: "abc" }]);
  const sandboxId = await seedSandbox(api.database.pool, { runId, rolloutId: rolloutIds[0] ?? "" });
  known = [runId, rolloutIds[0] ?? "", sandboxId];
});
afterAll(() => api.close());

const edges = [0, -1, 1, 2 ** 31, 2 ** 53, 2 ** 53 + 2, -(2 ** 63), 1e308, 0.5];
const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(
    "",
    "\0",
    "\ud800",
    "..",
    "../x",
    "'; drop table runs;--",
    "%00",
    "null",
    "NaN",
    "1e999",
    "reward/mean",
    "train",
    "key-chain",
    "9".repeat(30),
  ),
);
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: "small" },
    text,
    fc.constantFrom(...edges, null, true),
    fc.integer(),
    fc.double(),
    fc.array(tie("any"), { maxLength: 3 }),
    fc.dictionary(text, tie("any"), { maxKeys: 3 }),
  ),
})).any;

/** Values near what a field takes: right names with wrong insides find more than noise does. */
const fields = (names: readonly string[]) =>
  fc.dictionary(
    fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...names, "x") }, { weight: 1, arbitrary: text }),
    fc.oneof({ weight: 3, arbitrary: value }, { weight: 1, arbitrary: fc.nat(2).map((at) => known[at] ?? "") }),
    { maxKeys: 6 },
  );

const path = fc.oneof(
  text,
  fc.nat(2).map((at) => known[at] ?? ""),
  fc.constant("aaaaaaaaaa"),
);
const safely = (part: string): string => {
  try {
    return encodeURIComponent(part) || "%20";
  } catch {
    return "%ED%A0%80";
  }
};

describe("generated input", () => {
  it.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))(
    "%s never gives a 5xx",
    async (_name, route) => {
      const names = Object.keys(inputProperties(route.input)).filter((name) => name !== "waitMs");
      const parts = fc.array(path, { minLength: 2, maxLength: 2 });
      const query = fc.array(
        fc.tuple(fc.constantFrom(...names, "x"), fc.oneof(text, fc.constantFrom(...edges.map(String)))),
        { maxLength: 4 },
      );
      await fc.assert(
        fc.asyncProperty(parts, query, fields(names.length > 0 ? names : ["x"]), async (values, search, body) => {
          const filled = pathParameters(route.path).reduce(
            (address, name, at) => address.replace(`{${name}}`, safely(values[at] ?? "")),
            route.path,
          );
          const asked = route.method === "GET" ? `?${new URLSearchParams(search)}` : "";
          const init: RequestInit =
            route.method === "POST"
              ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
              : { method: route.method };
          const response = await api.fetch(`/api/v1${filled}${asked}`, init);
          const answer = await response.text();
          expect(response.status < 500 ? "" : `${filled}${asked} ${JSON.stringify(body)} → ${answer}`).toBe("");
        }),
        { numRuns: 40 },
      );
    },
  );

  it("bytes that are no JSON at all", async () => {
    const types = fc.constantFrom(
      "application/json",
      "application/yaml",
      "text/plain",
      "multipart/form-data",
      "application/json; charset=latin1",
    );
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200 }),
        types,
        fc.constantFrom("/api/v1/runs/check", "/api/v1/runs", "/api/trpc/runs.check"),
        async (bytes, type, address) => {
          const response = await api.fetch(address, {
            method: "POST",
            headers: { "content-type": type },
            body: Buffer.from(bytes),
          });
          expect(response.status).toBeLessThan(500);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("YAML that wants to be more than a config", async () => {
    const bomb = `a: &a [1,1,1,1,1,1,1,1,1]\n${"bcdefghi"
      .split("")
      .map((name, at) => `${name}: &${name} [${`*${"abcdefgh"[at]},`.repeat(9)}]`)
      .join("\n")}`;
    const odd = [
      bomb,
      "!!js/function 'x'",
      "&a [*a]",
      "a: 1\na: 2",
      "? {a: 1}\n: b",
      "- - - - x",
      "%YAML 9.9\n---\na",
      "a: !!binary x",
      "<<: {a: 1}",
      "\u0001",
      "a: |\n  x\n b",
      "- ".repeat(5_000),
      "__proto__: {kind: train}",
      "a:\n".repeat(2_000),
    ];
    for (const body of odd) {
      const response = await api.fetch("/api/v1/runs/check", {
        method: "POST",
        headers: { "content-type": "application/yaml" },
        body,
      });
      expect([body.slice(0, 20), response.status < 500]).toEqual([body.slice(0, 20), true]);
    }
  });

  it.each(Object.keys(appRouter._def.procedures))("tRPC %s never gives a 5xx, alone or in a batch", async (name) => {
    await fc.assert(
      fc.asyncProperty(value, async (input) => {
        const encoded = JSON.stringify(input) ?? "null";
        const alone = [
          await api.fetch(`/api/trpc/${name}?input=${safely(encoded)}`),
          await api.fetch(`/api/trpc/${name}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: encoded,
          }),
        ];
        const batch = await api.fetch(
          `/api/trpc/auth.me,${name}?batch=1&input=${safely(JSON.stringify({ 1: input }))}`,
        );
        for (const response of [...alone, batch]) {
          const answer = await response.text();
          expect(response.status < 500 ? "" : `${name} ${encoded} → ${answer}`).toBe("");
          expect(answer).not.toContain('"httpStatus":500');
        }
      }),
      { numRuns: 15 },
    );
  });

  it("good calls of a batch succeed beside a bad one", async () => {
    const input = encodeURIComponent(JSON.stringify({ 0: {}, 1: { runId: "x" }, 2: { runId: known[0] } }));
    const response = await api.fetch(`/api/trpc/runs.list,runs.get,runs.get?batch=1&input=${input}`);
    expect(response.status).toBe(207);
    const answers: unknown = await response.json();
    expect(answers).toMatchObject([
      { result: { data: { total: expect.any(Number) } } },
      { error: { data: { problem: { status: 400, errors: [{ path: "runId" }] } } } },
      { result: { data: { runId: known[0] } } },
    ]);
  });
});
