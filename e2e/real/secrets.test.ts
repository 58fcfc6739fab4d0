/** Fault 63: secrets are nowhere but in the places made for them, after a run that went well and calls that did not. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type CompletionServer, startCompletionServer } from "@rolldeck/backends/testing/completion-server";
import { LiveConnection } from "@rolldeck/realtime/client/live-connection";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rolldeck } from "./command-line.ts";
import { type KillablePart, processOf, processTree } from "./processes.ts";
import { type RealStack, startRealStack } from "./real-stack.ts";
import { tinyConfig } from "./tiny-run.ts";

/** By what they are; values that are made on the way are added. */
const canaries = new Map([
  ["owner token", "rdo_owner-canary-0123456789abcdef0123456789"],
  ["GPU worker key", "tml-gpu-canary-0123456789abcdef0123456789"],
  ["fleet secret", "fleet-canary-0123456789abcdef0123456789"],
  ["password of an endpoint", "pw-canary"],
  ["key of a listed endpoint", "sk-canary-0001"],
  ["password of a listed endpoint", "pw-listed-canary"],
]);
const canary = (name: string): string => canaries.get(name) ?? "";

let folder: string;
let stack: RealStack;
let hosted: CompletionServer;
const frames: string[] = [];
const answers: string[] = [];
const printed: string[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-secrets-"));
  mkdirSync(path.join(folder, "secrets"), { mode: 0o700 });
  writeFileSync(path.join(folder, "owner-token"), `${canary("owner token")}\n`, { mode: 0o600 });
  writeFileSync(path.join(folder, "secrets/gpu-worker-key"), `${canary("GPU worker key")}\n`, { mode: 0o600 });
  writeFileSync(path.join(folder, "secrets/fleet-secret"), `${canary("fleet secret")}\n`, { mode: 0o600 });
  // It takes no key at all, and says so with the key.
  hosted = await startCompletionServer({
    answer: ({ headers }) => ({ status: 400, body: { error: { message: `refused: ${headers.authorization}` } } }),
  });
  const listed = {
    name: "hosted",
    kind: "openai-chat",
    urls: [hosted.url.replace("http://", `http://u:${canary("password of a listed endpoint")}@`)],
    keys: [canary("key of a listed endpoint")],
    model: "big",
  };
  const endpoints = path.join(folder, "secrets/endpoints.json");
  writeFileSync(endpoints, JSON.stringify([listed]), { mode: 0o600 });
  const env = { ROLLDECK_LOG_LEVEL: "debug", ROLLDECK_ENDPOINTS: endpoints };
  stack = await startRealStack({ dataFolder: folder, env });
  canaries.set("database password", readFileSync(path.join(folder, "postgres/password"), "utf8").trim());
});
afterAll(async () => {
  await stack?.stop();
  await hosted?.close();
  rmSync(folder, { recursive: true, force: true });
});

const leaksIn = (text: string): string[] =>
  [...canaries].filter(([, value]) => text.includes(value)).map(([name]) => name);

/** One call whose answer is kept, and whose status is what it should be. */
async function call(status: number, method: string, place: string, options: { token?: string; body?: unknown } = {}) {
  const answer = await fetch(`${stack.url}${place}`, {
    method,
    redirect: "manual",
    headers: {
      authorization: `Bearer ${options.token ?? canary("owner token")}`,
      "idempotency-key": `key-${answers.length}`,
      ...(options.body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(options.body === undefined
      ? {}
      : { body: typeof options.body === "string" ? options.body : JSON.stringify(options.body) }),
  });
  const text = await answer.text();
  expect(answer.status, `${method} ${place}: ${text}`).toBe(status);
  answers.push(text);
  answer.headers.forEach((value) => {
    answers.push(value);
  });
  return text;
}

test("a run with an API token, and calls that fail in every way", async () => {
  const made = await rolldeck(["token", "create", "canary", "--data-dir", folder]);
  canaries.set("API token", made.stdout.trim());
  expect(canary("API token")).toMatch(/^\S{32,}$/);

  const socket = new LiveConnection({ url: stack.url, token: canary("API token") });
  socket.socket.onAny((...frame: unknown[]) => frames.push(JSON.stringify(frame)));
  const stranger = new LiveConnection({ url: stack.url, token: `${canary("owner token")}x` });
  stranger.socket.on("connect_error", (error) => frames.push(String(error)));

  const text = await call(201, "POST", "/api/v1/runs", { token: canary("API token"), body: { config: tinyConfig(2) } });
  const { runId }: { runId: string } = JSON.parse(text);
  socket.socket.emit("subscribe", { runId, after: 0 }, (reply) => frames.push(JSON.stringify(reply)));

  const endpoint = `http://u:${canary("password of an endpoint")}@127.0.0.1:9`;
  const withEndpoint = { ...tinyConfig(1), backend: { endpoint } };
  expect(await call(400, "POST", "/api/v1/runs", { body: { config: withEndpoint } })).toContain("backend.endpoint");
  const yaml = `taskSets: [{ name: key-chain }]\nbackend: { endpoint: "${endpoint}" }\n`;
  expect(await call(400, "POST", "/api/v1/runs", { body: { config: yaml } })).toContain("backend.endpoint");
  await call(200, "POST", "/api/v1/runs/check", { body: { config: withEndpoint } });
  await call(400, "POST", "/api/v1/runs", { body: { config: `backend: { endpoint: "${endpoint}" ]` } });
  await call(400, "POST", "/api/v1/runs", { body: { config: { ...tinyConfig(1), backend: { name: endpoint } } } });
  await call(400, "POST", "/api/v1/runs", { body: { config: { ...tinyConfig(1), backend: { [endpoint]: 1 } } } });
  await call(400, "POST", "/api/v1/runs", { body: `{"config": "${endpoint}` });
  await call(401, "GET", "/api/v1/runs", { token: `${canary("owner token")}x` });
  await call(401, "GET", "/api/v1/runs", { token: `${canary("API token")}x` });
  await call(403, "POST", "/api/v1/sign-in-codes", { token: canary("API token"), body: {} });
  await call(400, "GET", `/api/v1/runs/${encodeURIComponent(canary("owner token"))}`);
  await call(404, "GET", `/api/v1/nothing?token=${canary("API token")}`);
  await call(401, "GET", `/sign-in?code=${canary("API token")}`);
  for (const place of ["me", "tokens", "system", "catalogue", "runs", "openapi.json"])
    await call(200, "GET", `/api/v1/${place}`);
  for (const args of [["run", "launch", "-f", "-"], ["doctor"], ["run", "list"]]) {
    const { stdout, stderr } = await rolldeck([...args, "--data-dir", folder], { input: yaml });
    printed.push(stdout, stderr);
  }

  expect(await stack.ended(runId)).toBe("completed");
  for (const place of ["", "/events?limit=1000", "/matrix", "/timeline"])
    await call(200, "GET", `/api/v1/runs/${runId}${place}`);
  await call(200, "GET", "/metrics");
  await stack.until("the socket has told of it", async () => frames.some((frame) => frame.includes("completed")));
  socket.socket.disconnect();
  stranger.socket.disconnect();
});

test("a run over a listed endpoint whose server repeats the key in its refusals", async () => {
  const config = {
    ...tinyConfig(1),
    kind: "evaluate",
    backend: { name: "openai-chat", server: "hosted" },
    agent: { ...tinyConfig(1).agent, dialect: "openai" },
    evaluation: { samples: 2 },
  };
  const { runId }: { runId: string } = JSON.parse(await call(201, "POST", "/api/v1/runs", { body: { config } }));
  expect(await stack.ended(runId)).toBe("failed");
  expect(hosted.asks[0]?.headers.authorization).toBe(`Bearer ${canary("key of a listed endpoint")}`);
  expect(await call(200, "GET", `/api/v1/runs/${runId}/events?limit=1000`)).toContain("refused: Bearer [key]");
  for (const place of ["", "/matrix"]) await call(200, "GET", `/api/v1/runs/${runId}${place}`);
  await call(200, "GET", "/api/v1/system");
});

test("no canary in answers, socket messages and what the commands printed", () => {
  expect(frames.length).toBeGreaterThan(2);
  expect(leaksIn(answers.join("\n"))).toEqual([]);
  expect(leaksIn(frames.join("\n"))).toEqual([]);
  expect(leaksIn([...printed, ...stack.lines].join("\n"))).toEqual([]);
});

test("no canary in any row, of ours or of the queue", async () => {
  const { rows: tables } = await stack.pool.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
      where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  );
  expect(tables.length).toBeGreaterThan(20);
  for (const { name } of tables) {
    const { rows } = await stack.pool.query<{ row: string }>(`select t::text as row from ${name} t`);
    expect(leaksIn(rows.map(({ row }) => row).join("\n")), name).toEqual([]);
  }
});

test("no canary in arguments of processes, and in their environments only what each needs", () => {
  const tree = processTree(stack.pid);
  expect(tree.length).toBeGreaterThanOrEqual(4);
  expect(leaksIn(tree.map(({ commandLine }) => commandLine).join("\n"))).toEqual([]);
  const environment = (part: KillablePart): string =>
    readFileSync(`/proc/${processOf(stack.pid, part)}/environ`, "utf8");
  // The API exports checkpoints and serves them, of runs on the fleet too.
  expect(leaksIn(environment("api"))).toEqual(["GPU worker key", "fleet secret", "database password"]);
  expect(leaksIn(environment("worker"))).toEqual(["GPU worker key", "fleet secret", "database password"]);
  expect(leaksIn(environment("gpu-worker"))).toEqual(["GPU worker key"]);
});

test("no canary in logs and files but those made for it", () => {
  const kept = [
    "owner-token",
    "secrets/gpu-worker-key",
    "secrets/fleet-secret",
    "secrets/endpoints.json",
    "postgres/password",
  ];
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    // The cluster was looked at row by row; the rest of it belongs to Postgres.
    .filter((file) => !file.startsWith("postgres/cluster"));
  for (const name of ["api", "worker", "gpu-worker"]) expect(files).toContain(`logs/${name}.log`);
  const leaking = files.flatMap((file) =>
    leaksIn(readFileSync(path.join(folder, file), "latin1")).map((name) => ({ file, name })),
  );
  expect(leaking.filter(({ file }) => !kept.includes(file))).toEqual([]);
});
