import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { StoredCheckpoints } from "@rolldeck/backends/gpu-worker/stored-checkpoints";
import { RunCheckpoints, RunRestored } from "@rolldeck/contracts/api/checkpoints";
import { Problem } from "@rolldeck/contracts/api/problems";
import { ConfigCheck } from "@rolldeck/contracts/api/runs";
import { CreatedToken } from "@rolldeck/contracts/api/system";
import { BackendConfig } from "@rolldeck/contracts/backend-config";
import { readConfig } from "@rolldeck/db/runs/read-config";
import { seedCheckpoint } from "@rolldeck/db/testing/seed-checkpoint";
import { seedMetric, seedRun, seedStep } from "@rolldeck/db/testing/seed-run";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { jsonPost, smallConfig, startTestApi, type TestApi } from "../../testing/start-api.ts";
import { type StoredFiles, startStoredFiles, weights } from "../../testing/stored-files.ts";
import { CheckpointExports } from "../services/checkpoint-exports.ts";
import { StoredPlaces } from "../services/stored-places.ts";

let api: TestApi;
let stored: StoredFiles;
let runId: string;
beforeAll(async () => {
  stored = await startStoredFiles();
  api = await startTestApi({ gpuWorker: { url: stored.url, apiKey: stored.apiKey } });
});
afterAll(async () => {
  await api.close();
  await stored.close();
});
beforeEach(async () => {
  stored.state = "whole";
  runId = await trained();
});

const hostile = "a `b` | <img src=x> *c* # d";

async function trained(backend: object = {}): Promise<string> {
  const { pool } = api.database;
  const keepBest = { count: 1, metric: "evaluate/success", better: "higher" } as const;
  const made = await seedRun(pool, {
    status: "stopped",
    endedAt: "2026-01-01T00:00:00Z",
    config: { name: hostile, backend, checkpoints: { every: 1, keep: 1, keepBest } },
  });
  for (const step of [1, 2, 3]) {
    await seedStep(pool, made, { step, rollouts: [{ reward: 1, ending: "answer" }] });
    await seedCheckpoint(pool, made, {
      version: step,
      name: `v${step}`,
      path: `tinker://m/weights/${made}-${step}`,
      bytes: 9,
    });
  }
  await seedMetric(pool, made, "evaluate/success", [0.75, 0.5, 0.25]);
  await pool.query("update runs set step = 3, serving_version = 3 where id = $1", [made]);
  return made;
}

const read = async (id = runId) =>
  RunCheckpoints.parse(await (await api.fetch(`/api/v1/runs/${id}/checkpoints`)).json());
const problem = async (response: Response) => Problem.parse(await response.json());
const exported = (version = 2, init?: RequestInit) =>
  api.fetch(`/api/v1/checkpoints/${runId}-v${version}/export`, init);

describe("a run's checkpoints", () => {
  it("say what each is kept as, and what it was measured at", async () => {
    const { checkpoints, parent, children, restoreRefusal, exportRefusal, exportFormats } = await read();
    expect(checkpoints.map(({ id, keptAs, measure }) => [id, keptAs, measure])).toEqual([
      [`${runId}-v3`, ["newest", "last"], 0.25],
      [`${runId}-v2`, [], 0.5],
      [`${runId}-v1`, ["best"], 0.75],
    ]);
    expect({ parent, children, restoreRefusal, exportRefusal, exportFormats }).toEqual({
      parent: null,
      children: [],
      restoreRefusal: null,
      exportRefusal: null,
      exportFormats: ["hf"],
    });
  });

  it("are pinned and let go of, and the log says by whom", async () => {
    const pin = (pinned: boolean) => api.fetch(`/api/v1/checkpoints/${runId}-v2/pin`, jsonPost({ pinned }));
    expect(await (await pin(true)).json()).toMatchObject({ version: 2, pinned: true, keptAs: ["pinned"] });
    expect(await (await pin(false)).json()).toMatchObject({ version: 2, pinned: false, keptAs: [] });
    const { rows } = await api.database.pool.query(
      "select body from events where run_id = $1 and type = 'checkpoint-pinned' order by seq",
      [runId],
    );
    expect(rows.map(({ body }) => [body.pinned, body.by])).toEqual([
      [true, "the owner"],
      [false, "the owner"],
    ]);
  });

  it("are what a run is set back to, once, and both runs name each other", async () => {
    const restore = () => api.fetch(`/api/v1/runs/${runId}/restore`, jsonPost({ version: 2 }));
    const { supersededRunId, status } = RunRestored.parse(await (await restore()).json());
    expect(status).toBe("queued");
    const again = await restore();
    expect([again.status, (await problem(again)).detail]).toEqual([409, expect.stringContaining("The run is queued")]);
    expect((await read()).checkpoints.map(({ version }) => version)).toEqual([2, 1]);
    expect((await read()).checkpoints[0]?.children).toMatchObject([{ runId: supersededRunId, relation: "superseded" }]);
    const branch = await read(supersededRunId ?? "");
    expect(branch.parent).toMatchObject({ runId, version: 2 });
    expect(branch.restoreRefusal).toContain("superseded");
  });

  it.each([
    ["GET", "/runs/nosuchrun1/checkpoints", undefined, 404],
    ["POST", "/runs/nosuchrun1/restore", { version: 1 }, 404],
    ["POST", "/checkpoints/nosuchrun1-v1/pin", { pinned: true }, 404],
    ["GET", "/checkpoints/nosuchrun1-v1/export", undefined, 404],
    ["GET", "/checkpoints/..%2f..%2fetc/export", undefined, 400],
    ["POST", "/checkpoints/nosuchrun1-v1/pin", {}, 400],
    ["POST", "/runs/nosuchrun1/restore", { version: -1 }, 400],
  ] as const)("%s %s with %j is %s", async (method, at, body, status) => {
    const init = body === undefined ? { method } : jsonPost(body);
    const response = await api.fetch(`/api/v1${at}`, init);
    expect([response.status, (await problem(response)).status]).toEqual([status, status]);
  });

  it("are only read with a token that may only read", async () => {
    const { secret } = CreatedToken.parse(
      await (await api.fetch("/api/v1/tokens", jsonPost({ name: "reader", scope: "read" }))).json(),
    );
    const asReader = { authorization: `Bearer ${secret}` };
    expect((await api.fetch(`/api/v1/runs/${runId}/checkpoints`, { headers: asReader })).status).toBe(200);
    expect((await api.fetch(`/api/v1/runs/${runId}/restore`, jsonPost({ version: 1 }, asReader))).status).toBe(403);
    expect((await api.fetch(`/api/v1/checkpoints/${runId}-v1/pin`, jsonPost({ pinned: true }, asReader))).status).toBe(
      403,
    );
    expect((await fetch(`${api.url}/api/v1/checkpoints/${runId}-v1/export`)).status).toBe(401);
  });
});

describe("an exported checkpoint", () => {
  it("is a tar of the weights with a model card, exactly as long as it says", async () => {
    const response = await exported();
    expect(response.headers.get("content-type")).toBe("application/x-tar");
    expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${runId}-v2.tar"`);
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.length).toBe(Number(response.headers.get("content-length")));
    const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-export-"));
    try {
      writeFileSync(path.join(folder, "it.tar"), bytes);
      execFileSync("tar", ["-xf", "it.tar"], { cwd: folder });
      expect(readdirSync(folder).sort()).toEqual(["README.md", "it.tar", "model.safetensors", "rolldeck.json"]);
      expect(readFileSync(path.join(folder, "model.safetensors"), "utf8")).toBe(weights);
      const [, head = "", text = ""] = readFileSync(path.join(folder, "README.md"), "utf8").split(/^---$/mu);
      expect(parse(head)).toMatchObject({ license: "unknown", base_model: "quickstart", library_name: "transformers" });
      expect(text).toContain("version 2");
      expect(text).toContain("| `evaluate/success` | 0.5 | 2 |");
      expect(text).toContain("Licence: unknown");
      // Names of people are text, whatever they hold.
      expect(text).not.toMatch(/^#.*(?:<img|\*c\*)/mu);
      const facts = JSON.parse(readFileSync(path.join(folder, "rolldeck.json"), "utf8"));
      expect(facts).toMatchObject({
        format: 1,
        exportedAs: "hf",
        id: `${runId}-v2`,
        version: 2,
        config: { model: { name: "quickstart" } },
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("is the adapter alone where the run trained one and that is asked for", async () => {
    const adapted = await trained({ lora: { rank: 4 } });
    expect((await read(adapted)).exportFormats).toEqual(["hf", "peft"]);
    const response = await api.fetch(`/api/v1/checkpoints/${adapted}-v2/export?format=peft`);
    expect(stored.asked.at(-1)).toBe(`/ext/v1/checkpoints/m/weights/${adapted}-2/export?format=peft`);
    expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${adapted}-v2-adapter.tar"`);
    const text = Buffer.from(await response.arrayBuffer()).toString("latin1");
    expect(text).toContain("library_name: peft");
    expect(text).toContain("adapter_model.safetensors");
    const merged = await api.fetch(`/api/v1/checkpoints/${adapted}-v2/export?format=hf`);
    const card = Buffer.from(await merged.arrayBuffer()).toString("latin1");
    expect(card).toContain("library_name: transformers");
    expect(card).toContain("the adapter that was trained is merged into the weights");
  });

  it.each([
    ["peft", "the run trained all weights"],
    ["gguf", "Invalid option"],
  ])("is refused as %s by the field's name where it can't be given so", async (format, words) => {
    const response = await api.fetch(`/api/v1/checkpoints/${runId}-v2/export?format=${format}`);
    const { errors } = await problem(response);
    expect([response.status, errors?.[0]?.path, errors?.[0]?.message]).toEqual([
      400,
      "format",
      expect.stringContaining(words),
    ]);
  });

  it.each(["cut on the way", "changed on the way"] as const)("never looks whole when it is %s", async (state) => {
    stored.state = state;
    const response = await exported();
    expect(response.status).toBe(200);
    await expect(response.arrayBuffer()).rejects.toThrow();
  });

  it.each([
    ["gone", 409, "gone from the GPU worker's disk"],
    ["damaged", 409, "is damaged: model.safetensors"],
  ] as const)("is refused in words when its files are %s", async (state, status, words) => {
    stored.state = state;
    const response = await exported();
    expect([response.status, (await problem(response)).detail]).toEqual([status, expect.stringContaining(words)]);
  });

  it("says its size to whoever asks for the head alone, and lets go of what it opened", async () => {
    for (let times = 0; times < 5; times++) {
      const response = await exported(2, { method: "HEAD" });
      expect([response.status, Number(response.headers.get("content-length"))]).toEqual([200, expect.any(Number)]);
    }
    expect((await exported()).status).toBe(200);
  });

  it("lets go when whoever asked goes away", async () => {
    for (let times = 0; times < 5; times++) {
      const response = await exported();
      expect(response.status).toBe(200);
      await response.body?.cancel();
      // The server hears of it in its own time.
      await expect.poll(async () => (await exported(2, { method: "HEAD" })).status).toBe(200);
    }
  });

  it("is given up where nobody reads it on, so that others get theirs", async () => {
    const { pool } = api.database;
    const files = new StoredCheckpoints({ url: stored.url, apiKey: stored.apiKey });
    const of = async () => ({ stored: files, use: () => undefined });
    const exports = new CheckpointExports(pool, { of }, 50);
    const config = await readConfig(pool, runId);
    const at = { id: `${runId}-v2`, runId, version: 2, config, format: "hf" } as const;
    await Promise.all([exports.open(at), exports.open(at)]);
    const third = () =>
      exports.open(at).then(
        ({ body }) => body.destroy() && "opened",
        () => "refused",
      );
    await expect.poll(third, { timeout: 5_000 }).toBe("opened");
    await files.close();
  });

  it("is not begun beyond two, however many ask at once", async () => {
    const files = new StoredCheckpoints({ url: stored.url, apiKey: stored.apiKey });
    // Where a worker is takes a look at its rows.
    const of = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { stored: files, use: () => undefined };
    };
    const exports = new CheckpointExports(api.database.pool, { of });
    const config = await readConfig(api.database.pool, runId);
    const at = { id: `${runId}-v2`, runId, version: 2, config, format: "hf" } as const;
    const asked = await Promise.allSettled(Array.from({ length: 6 }, () => exports.open(at)));
    const opened = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    for (const { body } of opened) body.destroy();
    expect(opened).toHaveLength(2);
    await files.close();
  });

  it("is refused where this server knows no GPU worker, and where the weights are someone else's", () => {
    const notAsked = () => Promise.reject(new Error("not asked"));
    const some = { export: notAsked, verify: notAsked };
    const places = (own: typeof some | null) =>
      new StoredPlaces({ pool: api.database.pool, own, servers: null, connect: () => ({ ...some, close: notAsked }) });
    const backend = BackendConfig.parse({});
    expect(places(null).refusal({ backend })).toContain("knows no GPU worker");
    expect(places(some).refusal({ backend })).toBeNull();
    expect(places(some).refusal({ backend: { ...backend, server: "hosted" } })).toContain("someone else runs");
    const fleet = BackendConfig.parse({ fleet: {} });
    expect(places(some).refusal({ backend: fleet })).toContain("ROLLDECK_FLEET_SECRET");
  });
});

describe("a launch that begins with a checkpoint", () => {
  const check = async (version: number | null, more: object = {}) => {
    const config = { ...smallConfig, model: { startFrom: { run: runId, version } }, ...more };
    return ConfigCheck.parse(await (await api.fetch("/api/v1/runs/check", jsonPost({ config }))).json());
  };

  it("is looked at before it is made: whole weights are fine", async () => {
    expect(await check(2)).toMatchObject({ ok: true, issues: [] });
    expect(stored.asked.at(-1)).toBe(`/ext/v1/checkpoints/m/weights/${runId}-2/verify`);
  });

  it.each([
    ["gone", "its files are gone"],
    ["damaged", "is damaged: model.safetensors"],
  ] as const)("is refused when they are %s, with the field and the reason", async (state, words) => {
    stored.state = state;
    for (const version of [2, null])
      expect((await check(version)).issues).toEqual([
        { path: "model.startFrom.version", message: expect.stringContaining(words), fix: "choose another version" },
      ]);
    const config = { ...smallConfig, model: { startFrom: { run: runId, version: 2 } } };
    expect((await api.fetch("/api/v1/runs", jsonPost({ config }))).status).toBe(400);
  });

  it("is refused when the weights lie on another server than the run's", async () => {
    const backend = { name: "gpu-worker", endpoint: "http://127.0.0.1:9/" };
    expect((await check(2, { backend })).issues).toMatchObject([
      { path: "model.startFrom.run", fix: "use its backend" },
    ]);
  });
});

it("a GPU worker that does not answer is no reason to refuse a launch, and an export says so", async () => {
  const away = await startTestApi({ gpuWorker: { url: "http://127.0.0.1:9", apiKey: "tml-nobody-there" } });
  try {
    const { pool } = away.database;
    const made = await seedRun(pool, { status: "stopped" });
    await seedCheckpoint(pool, made, { version: 1, name: "v1", path: "tinker://m/weights/v1", bytes: 1 });
    const config = { ...smallConfig, model: { startFrom: { run: made, version: 1 } } };
    expect((await away.fetch("/api/v1/runs", jsonPost({ config }))).status).toBe(201);
    const response = await away.fetch(`/api/v1/checkpoints/${made}-v1/export`);
    expect(response.status).toBe(503);
  } finally {
    await away.close();
  }
});
