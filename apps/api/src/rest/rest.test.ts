import { ArtifactList } from "@rolldeck/contracts/api/artifacts";
import { Problem } from "@rolldeck/contracts/api/problems";
import { presets } from "@rolldeck/contracts/presets";
import { putArtifact } from "@rolldeck/db/artifacts";
import {
  seedEvents,
  seedMetric,
  seedRun,
  seedStep,
  seedTrainingRow,
  seedTrajectory,
} from "@rolldeck/db/testing/seed-run";
import { seedSandbox } from "@rolldeck/db/testing/seed-sandbox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { jsonPost, smallConfig, startTestApi, type TestApi } from "../../testing/start-api.ts";
import { routes } from "./routes.ts";

const html = "<img src=x onerror=alert(1)>";
let api: TestApi;
let runId: string;
let rolloutId: string;
let sandboxId: string;
beforeAll(async () => {
  api = await startTestApi();
  const { pool } = api.database;
  runId = await seedRun(pool);
  await seedEvents(pool, runId, 5);
  await seedMetric(pool, runId, "reward/mean", [0.1, Number.NaN, 0.3]);
  const step = await seedStep(pool, runId, { step: 1, rollouts: [{ reward: 1, ending: "answer" }] });
  rolloutId = step.rolloutIds[0] ?? "";
  await seedTrajectory(
    pool,
    rolloutId,
    [
      { origin: "template", text: "abc" },
      { origin: "sampled", text: 'get("a")\0\u{1F600}' },
    ],
    { call: { output: html } },
  );
  const mask = [{ count: 15, reason: "stale" }] as const;
  await seedTrainingRow(pool, {
    ...{ runId, stepId: step.stepId, rolloutId, row: 0, ranges: [0, 15], mask, advantage: 0, sent: false },
  });
  const { rowCount } = await pool.query("update rollouts set state = 'active', claim = 1 where id = $1", [rolloutId]);
  expect(rowCount).toBe(1);
  await putArtifact(pool, {
    ...{ runId, rolloutId, attempt: 1, claim: 1, turn: 0, index: 0, name: "output.txt", mediaType: "text/html" },
    content: Buffer.from(html),
    wholeBytes: 9_000_000,
  });
  await pool.query("update rollouts set state = 'settled' where id = $1", [rolloutId]);
  sandboxId = await seedSandbox(pool, { runId, rolloutId, state: "kept", keepMinutes: 10 });
});
afterAll(() => api.close());

const problem = async (response: Response) => Problem.parse(await response.json());
const runCount = async () => Number((await api.database.pool.query("select count(*) from runs")).rows[0].count);

/** Routes that need a checkpoint of a run that is over, a GPU worker or a host: checkpoints, served-endpoint and fleet.test.ts call them. */
const withTheirOwnScene: ReadonlySet<string> = new Set([
  ...["restoreRun", "pinCheckpoint", "exportCheckpoint", "serveCheckpoint", "stopServing"],
  ...["wakeFleetReader", "releaseFleetReader"],
  ...["addFleetHost", "drainFleetHost", "removeFleetHost", "readFleetLog"],
]);

describe("every route", () => {
  it("answers as its schema says", async () => {
    const driven = await seedRun(api.database.pool, { config: { stepSource: "driven" } });
    // Parts that can still be held.
    const open = await seedStep(api.database.pool, await seedRun(api.database.pool), {
      step: 1,
      state: "gathering",
      rollouts: [{ reward: null, ending: null }],
    });
    const bodies: Record<string, unknown> = {
      launchRun: { config: presets.quickstart.config },
      launchComparison: {
        ...{ name: "two", config: presets.quickstart.config },
        variants: [{ label: "a" }, { label: "b", change: { seed: 2 } }],
      },
      checkConfig: { config: "taskSets: [{name: key-chain}]" },
      createToken: { name: "ci" },
      requestBatch: { trainerStep: 1, instances: [{ taskSet: 0, index: 3 }], samples: 2, policyVersion: 0 },
      heartbeat: { policyVersion: 1 },
      setQuota: { project: "alpha", resource: "sandbox", quota: 4 },
      startSimulation: { runId, seeds: 1 },
    };
    const queries: Record<string, string> = {
      readMetrics: "?names=reward/mean,reward/success",
      compareRuns: `?runIds=${runId}&names=reward/mean`,
      readEvents: "?after=2&limit=2",
    };
    let batchId = "none";
    let tokenId = "none";
    let simulationId = "none";
    let comparisonId = "none";
    for (const route of routes) {
      if (withTheirOwnScene.has(route.operationId)) continue;
      const forDriven = route.tag === "driven";
      const path = route.path
        .replace("{runId}", forDriven ? driven : runId)
        .replace("{stepId}", open.stepId)
        .replace("{groupId}", open.groupId)
        .replace("{rolloutId}", route.replyName === "PartReply" ? (open.rolloutIds[0] ?? "") : rolloutId)
        .replace("{resource}", "sandbox")
        .replace("{sandboxId}", sandboxId)
        .replace("{batchId}", batchId)
        .replace("{tokenId}", tokenId)
        .replace("{simulationId}", simulationId)
        .replace("{comparisonId}", comparisonId)
        .replace("{step}", "1")
        .replace("{turn}/{index}/{name}", "0/0/output.txt");
      const init = route.method === "POST" ? jsonPost(bodies[route.operationId] ?? {}) : { method: route.method };
      const response = await api.fetch(`/api/v1${path}${queries[route.operationId] ?? ""}`, init);
      const text = await response.text();
      expect([route.operationId, response.status, text.slice(0, response.ok ? 0 : 500)]).toEqual([
        route.operationId,
        route.status ?? 200,
        "",
      ]);
      expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      if (route.isFile) continue;
      const value: unknown = JSON.parse(text);
      const parsed = route.reply.safeParse(value);
      expect([route.operationId, parsed.error?.issues ?? []]).toEqual([route.operationId, []]);
      if (route.operationId === "requestBatch") batchId = z.object({ batchId: z.string() }).parse(value).batchId;
      if (route.operationId === "launchComparison")
        comparisonId = z.object({ comparisonId: z.string() }).parse(value).comparisonId;
      if (route.operationId === "startSimulation")
        simulationId = z.object({ simulationId: z.string() }).parse(value).simulationId;
      if (route.operationId === "createToken") tokenId = z.object({ tokenId: z.string() }).parse(value).tokenId;
    }
  });

  it("answers HEAD like GET, without the body", async () => {
    const response = await api.fetch(`/api/v1/runs/${runId}`, { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(Number(response.headers.get("content-length"))).toBeGreaterThan(100);
    expect(await response.text()).toBe("");
  });
});

describe("refusals", () => {
  const bad: [string, RequestInit, number, string | null][] = [
    ["/api/v1/runs?limit=-1", {}, 400, "limit"],
    ["/api/v1/runs?limit=1e9", {}, 400, "limit"],
    ["/api/v1/runs?page=abc", {}, 400, "page"],
    ["/api/v1/runs?limti=3", {}, 400, "limti"],
    ["/api/v1/runs?limit=1&limit=2", {}, 400, "limit"],
    ["/api/v1/runs?query=a%00b", {}, 400, "query"],
    ["/api/v1/runs?__proto__=x", {}, 400, "__proto__"],
    ["/api/v1/runs/x", {}, 400, "runId"],
    ["/api/v1/runs/..%2Fx", {}, 400, "runId"],
    ["/api/v1/runs/%E0%A4%A", {}, 400, "runId"],
    [`/api/v1/runs/${"a".repeat(10_000)}`, {}, 400, "runId"],
    ["/api/v1/runs/aaaaaaaaaa", {}, 404, null],
    ["/api/v1/rollouts/aaaaaaaaaa", {}, 404, null],
    ["/api/v1/nothing", {}, 404, null],
    ["/api/v1/runs/check", {}, 405, null],
    ["/api/v1/runs", { method: "PUT" }, 405, null],
    ["/api/v1/runs", { method: "POST", body: "x" }, 415, null],
    ["/api/v1/runs", { method: "POST", headers: { "content-type": "text/html" }, body: "x" }, 415, null],
    ["/api/v1/runs", { method: "POST", headers: { "content-type": "application/json" }, body: '{"a":1,}' }, 400, null],
    ["/api/v1/runs", { method: "POST", headers: { "content-type": "application/json" }, body: "[]" }, 400, ""],
    ["/api/v1/runs", { method: "POST", headers: { "content-type": "application/json" }, body: "null" }, 400, ""],
    ["/api/v1/runs", { method: "POST" }, 400, "config"],
    [
      "/api/v1/runs",
      { method: "POST", headers: { "content-type": "application/json" }, body: Buffer.from([0x7b, 0xff, 0x7d]) },
      400,
      null,
    ],
    [
      "/api/v1/runs",
      {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: `{"config":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
      },
      400,
      null,
    ],
    [
      "/api/v1/runs",
      { method: "POST", headers: { "content-type": "application/yaml" }, body: `a: ${"[".repeat(50_000)}` },
      400,
      "",
    ],
    ["/api/v1/runs", jsonPost({ config: { ...smallConfig, name: "a\0b" } }), 400, "config.name"],
    ["/api/v1/runs", jsonPost({ config: smallConfig, extra: 1 }), 400, "extra"],
    [
      "/api/v1/runs",
      jsonPost({ config: { taskSets: [{ name: "key-chain", weight: -1 }] } }),
      400,
      "taskSets[0].weight",
    ],
    ["/api/v1/runs", jsonPost({ config: { taskSets: [] } }), 400, "taskSets"],
    [
      "/api/v1/runs",
      jsonPost({ config: { ...smallConfig, algorithm: { groupSize: 1_000_000 } } }),
      400,
      "algorithm.groupSize",
    ],
    [
      "/api/v1/runs",
      jsonPost({ config: { ...smallConfig, backend: { endpoint: "ftp://x" } } }),
      400,
      "backend.endpoint",
    ],
  ];
  it.each(bad)("%s %o → %i naming %s", async (path, init, status, field) => {
    const before = await runCount();
    const response = await api.fetch(path, init);
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toContain("application/problem+json");
    const body = await problem(response);
    expect(body.requestId).toBe(response.headers.get("x-request-id"));
    if (field !== null) expect(body.errors?.map((issue) => issue.path)).toContain(field);
    expect(await runCount()).toBe(before);
  });

  it("names what is allowed", async () => {
    expect((await api.fetch("/api/v1/runs", { method: "PATCH" })).headers.get("allow")).toBe("GET, POST");
  });

  it("says too large before it has read all of it", async () => {
    const body = Buffer.alloc(3 * 1024 * 1024, 0x20);
    const response = await api.fetch("/api/v1/runs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(response.status).toBe(413);
  });

  it("suggests the nearest key and name", async () => {
    const unknown = await problem(
      await api.fetch("/api/v1/runs", jsonPost({ config: { ...smallConfig, algorithm: { group_size: 4 } } })),
    );
    expect(unknown.errors).toEqual([
      { path: "algorithm.group_size", message: "unknown key", fix: "did you mean groupSize?" },
    ]);
    const named = await problem(
      await api.fetch("/api/v1/runs", jsonPost({ config: { taskSets: [{ name: "keychain" }] } })),
    );
    expect(named.errors?.[0]).toMatchObject({ path: "taskSets[0].name", fix: "did you mean key-chain?" });
  });

  it("never repeats a password from an address", async () => {
    const config = { ...smallConfig, backend: { endpoint: "http://u:pw-canary@127.0.0.1:9" } };
    const response = await api.fetch("/api/v1/runs", jsonPost({ config }));
    const text = await response.text();
    expect(response.status).toBe(400);
    expect(text).toContain("backend.endpoint");
    expect(text).not.toContain("pw-canary");
  });
});

describe("artifacts", () => {
  const address = () => `/api/v1/rollouts/${rolloutId}/artifacts`;
  it("are listed, and come as files that no browser runs or shows", async () => {
    const list = ArtifactList.parse(await (await api.fetch(address())).json());
    expect(list.artifacts).toEqual([
      expect.objectContaining({ turn: 0, index: 0, name: "output.txt", bytes: 9_000_000, storedBytes: html.length }),
    ]);
    const response = await api.fetch(`${address()}/0/0/output.txt`);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "content-disposition": 'attachment; filename="output.txt"',
      "x-content-type-options": "nosniff",
      "content-security-policy": expect.stringContaining("sandbox"),
      "content-length": String(html.length),
    });
    expect(await response.text()).toBe(html);
  });
  it.each([
    ["/0/0/other.txt", 404],
    ["/1/0/output.txt", 404],
    ["/0/0/output.txt?attempt=2", 404],
    ["/x/0/output.txt", 400],
    ["/-1/0/output.txt", 400],
    ["/0/99999999999/output.txt", 400],
    ["/0/0/..%2Foutput.txt", 400],
    ["?after=x", 400],
  ])("%s → %i", async (path, status) => {
    expect((await api.fetch(address() + path)).status).toBe(status);
  });
  it("are for those who are signed in", async () => {
    expect((await fetch(`${api.url}${address()}/0/0/output.txt`)).status).toBe(401);
  });
});

describe("text of models and tools", () => {
  it("comes as it is, in JSON that no browser takes for a page", async () => {
    const response = await api.fetch(`/api/v1/rollouts/${rolloutId}/turns`);
    expect(response.headers.get("content-type")).toContain("application/json");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    const text = await response.text();
    expect(text).toContain("<img src=x onerror=alert(1)>");
    expect(text).toContain('get(\\"a\\")\\u0000\u{1F600}');
  });
});
