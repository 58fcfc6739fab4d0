/** Evaluation runs over servers that only sample, on real parts: no GPU worker takes part, and keys stay where they belong. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AnswerScript,
  type CompletionAsk,
  type CompletionServer,
  type CompletionServerOptions,
  startCompletionServer,
} from "@rolldeck/backends/testing/completion-server";
import { decodeTokens, encodeBytes, endToken } from "@rolldeck/backends/testing/scripted/vocabulary";
import { keyChainPolicy } from "@rolldeck/backends/testing/scripted-worker";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { requestBatch } from "@rolldeck/db/driven/batch-requests";
import { readFinishedRollouts } from "@rolldeck/db/driven/finished-rollouts";
import { renewTrainerLease } from "@rolldeck/db/driven/trainer-lease";
import { readRun } from "@rolldeck/db/reads/read-run";
import { wakeRun } from "@rolldeck/db/runs/wake";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let folder: string;
let rig: Rig | null = null;
const servers: CompletionServer[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rolldeck-endpoints-"));
});
afterEach(async () => {
  await rig?.close();
  rig = null;
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await rm(folder, { recursive: true });
});

async function serve(answer: AnswerScript, options: Partial<CompletionServerOptions> = {}): Promise<CompletionServer> {
  const server = await startCompletionServer({ answer, ...options });
  servers.push(server);
  return server;
}
async function start(endpoints: object[]): Promise<Rig> {
  const file = join(folder, "endpoints.json");
  await writeFile(file, JSON.stringify(endpoints));
  rig = await startRig({ env: { ROLLDECK_ENDPOINTS: file, HOSTED_KEY: "sk-canary-0001" } });
  return rig;
}
/** Its reference is kept by whoever trains: neither an evaluation nor this server's side of a driven run. */
const kl = { coefficient: 1e-3 };
const evaluate = (change: Partial<RunConfigInput>): RunConfigInput =>
  smokeConfig({
    kind: "evaluate",
    model: { name: "quickstart", warmStart: null },
    evaluation: { samples: 6 },
    ...change,
  });

const policy = keyChainPolicy();
async function sampleIds(ask: CompletionAsk) {
  const text = await policy({ prompt: decodeTokens(ask.promptTokens()), seed: 1, version: 0 });
  return { tokens: [...encodeBytes(String(text)), endToken] };
}
/** The same policy on a server that writes calls itself. */
function chatCalls({ body }: CompletionAsk) {
  const messages = body.messages as { role: string; content: string }[];
  const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content.trim());
  const seen = results.at(-1) ?? /find ([a-z])/.exec(messages.at(-1)?.content ?? "")?.[1] ?? "";
  const call = /^[a-z]$/.test(seen)
    ? { name: "get", arguments: { k: seen } }
    : { name: "finish", arguments: { answer: seen } };
  return { calls: [{ name: call.name, arguments: JSON.stringify(call.arguments) }] };
}
const completed = (made: Rig, runId: string) =>
  made
    .untilStatus(runId, "completed", "failed", "paused")
    .then(async (status) => [status, (await made.status(runId)).reason]);

test("completions by address: preparing → running → completed without a GPU worker, at version 0", async () => {
  const server = await serve(sampleIds);
  const made = await start([]);
  const backend = { name: "openai-completions", endpoint: server.url };
  const runId = await made.launch(evaluate({ backend, algorithm: { kl } }));
  expect(await completed(made, runId)).toEqual(["completed", "the evaluation is done"]);
  const count = (sql: string) => made.value(sql, [runId]);
  expect(await count("select count(*)::int from rollouts where run_id = $1 and success")).toBe(6);
  expect(await count("select serving_version from runs where id = $1")).toBe(0);
  expect(
    await count(
      "select count(*)::int from transitions t join rollouts r on r.id = t.rollout_id where r.run_id = $1 and t.policy_version <> 0",
    ),
  ).toBe(0);
  expect(made.gpu.stats.requests.get("/api/v1/create_model")).toBeUndefined();
  expect(server.asks.every(({ body }) => body.model === "quickstart")).toBe(true);
});

test("generate and chat by name in the operator's list, with a key from the environment that shows up nowhere", async () => {
  const engine = await serve(sampleIds);
  const hosted = await serve(chatCalls, { keys: ["sk-canary-0001"] });
  const made = await start([
    { name: "engine", kind: "vllm-generate", urls: [engine.url], model: "served-name" },
    { name: "hosted", kind: "openai-chat", urls: [`${hosted.url}/v1`], keyEnv: "HOSTED_KEY", model: "big" },
  ]);
  const generate = await made.launch(evaluate({ backend: { name: "vllm-generate", server: "engine" } }));
  const agent = {
    ...smokeConfig().agent,
    dialect: "openai",
    maxContextTokens: 512,
    sampling: { maxTokensPerTurn: 64 },
  };
  const chat = await made.launch(evaluate({ backend: { name: "openai-chat", server: "hosted" }, agent }));
  expect(await completed(made, generate)).toEqual(["completed", "the evaluation is done"]);
  expect(await completed(made, chat)).toEqual(["completed", "the evaluation is done"]);
  const won = "select count(*)::int from rollouts where run_id = $1 and success";
  expect([await made.value(won, [generate]), await made.value(won, [chat])]).toEqual([6, 6]);
  expect(engine.asks[0]?.body.model).toBe("served-name");
  // The chat server hides its tokens: no logprobs are made up.
  expect(
    await made.value(
      "select count(*)::int from segments s join rollouts r on r.id = s.rollout_id where r.run_id = $1 and s.origin = 'sampled' and s.logprobs is not null",
      [chat],
    ),
  ).toBe(0);
  const tables = ["runs", "events", "rollouts", "gpu_workers", "policy_versions"];
  for (const table of tables) {
    expect(await made.value(`select count(*)::int from ${table} t where t::text like '%canary%'`), table).toBe(0);
  }
});

test("an outside trainer drives a run over completions and gets ids with log-probabilities", async () => {
  const server = await serve(sampleIds);
  const made = await start([]);
  const backend = { name: "openai-completions", endpoint: server.url };
  const model = { name: "quickstart", warmStart: null };
  const config = smokeConfig({ stepSource: "driven", backend, model, budget: { steps: 1 } });
  const runId = await made.launch({ ...config, algorithm: { ...config.algorithm, kl } });
  await made.untilStatus(runId, "running");
  const { pool } = made.database;
  await renewTrainerLease(pool, { runId, leaseMs: 60_000 });
  const instances = [0, 1].map((index) => ({ taskSet: 0, index }));
  const request = { runId, trainerStep: 1, instances, samples: 2, policyVersion: 0, deadlineMs: null };
  const { batchId } = await requestBatch(pool, request);
  await wakeRun(pool, runId);
  const page = await made.until("the batch", async () => {
    const read = await readFinishedRollouts(pool, { runId, batchId, cursor: 0, limit: 10 });
    return read.done ? read : null;
  });
  expect(page.rollouts).toHaveLength(4);
  for (const { trajectory } of page.rollouts) {
    const sampled = trajectory.segments.filter(({ origin }) => origin === "sampled");
    expect(sampled.length).toBeGreaterThan(0);
    for (const { tokens, logprobs } of sampled) expect(logprobs).toHaveLength(tokens.length);
  }
});

test("a refused key, and a name that is not listed, end the run with the reason instead of waiting for ever", async () => {
  const hosted = await serve(chatCalls, { keys: ["sk-another"] });
  const made = await start([
    { name: "hosted", kind: "openai-chat", urls: [hosted.url], keyEnv: "HOSTED_KEY", model: "big" },
  ]);
  const agent = { ...smokeConfig().agent, dialect: "openai" };
  const refused = await made.launch(evaluate({ backend: { name: "openai-chat", server: "hosted" }, agent }));
  const unknown = await made.launch(evaluate({ backend: { name: "openai-chat", server: "nobody" }, agent }));
  expect(await made.untilStatus(refused, "failed")).toBe("failed");
  expect(await made.untilStatus(unknown, "failed")).toBe("failed");
  const notes = JSON.stringify([...(await made.events(refused)), ...(await made.events(unknown))]);
  expect(notes).toMatch(/401: invalid api key/);
  expect(notes).toMatch(/no server .{0,3}nobody/);
  expect(notes).not.toMatch(/canary/);
});

test("waiting for a server shows on the run's page", async () => {
  let asked = 0;
  const busy = { status: 429, headers: { "retry-after": "3" }, body: { error: { message: "slow down" } } };
  const server = await serve((ask) => (asked++ === 0 ? busy : sampleIds(ask)));
  const made = await start([]);
  const runId = await made.launch(evaluate({ backend: { name: "openai-completions", endpoint: server.url } }));
  expect(await completed(made, runId)).toEqual(["completed", "the evaluation is done"]);
  const notes = (await made.events(runId)).filter(({ type }) => type === "note");
  expect(notes.map((note) => JSON.stringify(note)).filter((note) => note.includes("slow down"))).toHaveLength(1);
});

/** Of a server that was there a moment ago. */
async function closedAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new TypeError("no port");
  return `http://127.0.0.1:${address.port}/v1`;
}

test("a server that nobody answers for is named with its cause in the log and on the page, and waited for only so long", async () => {
  const address = await closedAddress();
  const listed = { name: "engines", kind: "openai-chat", urls: [address], model: "m" };
  const made = await start([listed]);
  const byName = { name: "openai-chat", server: "engines", awayMinutes: 0.1 };
  const byAddress = { name: "openai-completions", endpoint: address, awayMinutes: 0.1 };
  const [first, second] = await Promise.all([
    made.launch(evaluate({ backend: byName })),
    made.launch(evaluate({ backend: byAddress })),
  ]);
  const waitingFor = await made.until("it is on the page", async () => {
    const { waitingFor: words, boot } = await readRun(made.database.pool, second);
    return words !== null && boot !== null ? { ...words, boot: boot.message } : null;
  });
  expect(waitingFor).toMatchObject({ address, reason: "connection refused", limitMinutes: 0.1 });
  expect(waitingFor.boot).toContain(`${address}: connection refused`);
  expect(waitingFor.tries).toBeGreaterThan(0);
  expect(Date.now() - Date.parse(waitingFor.since)).toBeLessThan(60_000);
  for (const runId of [first, second]) {
    const [status, reason] = await completed(made, runId);
    expect(status).toBe("failed");
    expect(reason).toMatch(
      /^backend\.(server|endpoint): http:.* has not answered for 0\.1 min \(\d+ tries\): connection refused$/,
    );
    expect(reason).toContain(address);
    const said = (await made.events(runId)).flatMap((body) => (body.type === "boot-progress" ? [body.message] : []));
    expect(said[0]).toMatch(/^waiting for http:.*: connection refused, since \d\d:\d\d:\d\d UTC, try 1$/);
    expect(said[0]).toContain(address);
    expect((await readRun(made.database.pool, runId)).waitingFor).toBeNull();
  }
});
