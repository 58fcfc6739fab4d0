/** Tools that do everything wrong, on real parts: each is an observation with a reason, nothing is lost, the rollout goes on. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tool, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { listArtifacts, readArtifact } from "@rolldeck/db/artifacts";
import { finish } from "@rolldeck/tools/finish";
import { gymTool } from "@rolldeck/tools/gym-tool";
import { gridDefinition } from "@rolldeck/tools/testing/grid-world";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let folder: string;
let rig: Rig | null = null;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rolldeck-tools-"));
});
afterEach(async () => {
  await rig?.close();
  rig = null;
  await rm(folder, { recursive: true });
});

const tool = (name: string, call: Tool["call"], more: Partial<Tool> = {}): Tool => ({
  name,
  description: name,
  parameters: { type: "object", properties: {} },
  idempotent: true,
  call,
  ...more,
});
/** A task of one instance that is solved by whoever gets to its end. */
const taskOf = (names: string[], solved: (answer: string | null) => boolean): Task => ({
  name: "story",
  description: "",
  sandbox: "none",
  tools: names,
  defaults: { maxTurns: 20, maxContextTokens: 8192 },
  size: () => null,
  instance: (split, index) => ({ instanceId: `${split}-${index}`, split, index, state: { seed: 0 } }),
  messages: () => [{ role: "user", content: "go" }],
  verify: async (_instance, { finalAnswer }) => {
    const success = solved(finalAnswer);
    return { reward: success ? 1 : 0, success, parts: { answer: success ? 1 : 0 }, notes: null };
  },
});
/** Says one line after the other, whatever comes back. */
const recite =
  (...lines: string[]) =>
  ({ prompt }: { prompt: string }) =>
    lines[prompt.split("<|assistant|>").length - 2] ?? lines.at(-1) ?? "";

const story = (agent: object) => ({
  ...smokeConfig({ algorithm: { groupsPerStep: 1, groupSize: 2 }, budget: { steps: 1 } }),
  taskSets: [{ name: "story" }],
  agent: { dialect: "pythonic", describeTools: false, maxContextTokens: 8192, maxTurns: 20, ...agent },
});
const rows = async (sql: string, runId: string) => (await rig?.database.pool.query(sql, [runId]))?.rows ?? [];
const callsOf = (runId: string) =>
  rows(
    `select c.name, c.output, c.error_code as code, c.whole_bytes::float8 as whole from tool_calls c
       join rollouts r on r.id = c.rollout_id where r.run_id = $1 and r.sample = 0 order by c.turn, c.index`,
    runId,
  );

test("throwing, hanging, silent, binary, huge: each is told, and the whole of what was cut is kept", async () => {
  const broken: Record<string, Tool> = {
    throws: tool("throws", () => Promise.reject({ status: 500 })),
    hangs: tool("hangs", () => new Promise(() => undefined)),
    // @ts-expect-error: an operator's tool may be written without types
    silent: tool("silent", async () => undefined),
    // @ts-expect-error: an operator's tool may be written without types
    binary: tool("binary", async () => ({ output: Buffer.from([0x61, 0x00, 0xff, 0x1b, 0x5b, 0x31, 0x6d, 0x62]) })),
    huge: tool("huge", async (): Promise<ToolOutcome> => ({ output: `first ${"y".repeat(200_000_000)} last` })),
    finish,
  };
  const lines = ["throws", "hangs", "silent", "binary", "huge"].map((name) => `[${name}()]`);
  rig = await startRig({
    policy: recite(...lines, '[finish(answer="done")]'),
    parts: { tasks: { story: taskOf(Object.keys(broken), (answer) => answer === "done") }, tools: broken },
  });
  const runId = await rig.launch(story({ toolTimeoutMs: 300, maxOutputBytes: 256 }));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(await rows("select reward, attempt from rollouts where run_id = $1", runId)).toEqual([
    { reward: 1, attempt: 1 },
    { reward: 1, attempt: 1 },
  ]);
  expect(await callsOf(runId)).toEqual([
    { name: "throws", output: '{"status":500}', code: "tool_error", whole: null },
    { name: "hangs", output: "timed out after 0.3 s", code: "timeout", whole: null },
    { name: "silent", output: "the tool gave nothing back", code: "bad_outcome", whole: null },
    { name: "binary", output: "a\u2400\ufffdb", code: null, whole: null },
    {
      name: "huge",
      output: expect.stringMatching(/^first y+\n\[.* cut .*\]\ny+ last$/),
      code: null,
      whole: 200_000_011,
    },
    { name: "finish", output: "", code: null, whole: null },
  ]);
  const [{ id: rolloutId }] = await rows("select id from rollouts where run_id = $1 limit 1", runId);
  const { artifacts } = await listArtifacts(rig.database.pool, { rolloutId, after: -1 });
  // What was cleaned for the model is kept as it came, and so is what was cut.
  expect(artifacts).toMatchObject([
    { turn: 3, index: 0 },
    { turn: 4, index: 0, bytes: 200_000_011 },
  ]);
  const { name = "" } = artifacts[1] ?? {};
  const binary = await readArtifact(rig.database.pool, { rolloutId, turn: 3, index: 0, name });
  expect(binary.content.toString()).toBe("a\u0000\ufffd\u001b[1mb");
  const { content } = await readArtifact(rig.database.pool, { rolloutId, turn: 4, index: 0, name });
  expect(content.length).toBeGreaterThan(4_000_000);
});

const script = fileURLToPath(new URL("../../../packages/agent/testing/mcp-server.mjs", import.meta.url));
const finishing = { tasks: { story: taskOf(["finish"], (answer) => answer === "done") }, tools: { finish } };
async function startWithServers(servers: object, ...lines: string[]): Promise<Rig> {
  const list = join(folder, "mcp.json");
  await writeFile(list, JSON.stringify(servers));
  rig = await startRig({
    policy: recite(...lines, '[finish(answer="done")]'),
    parts: finishing,
    env: { ROLLDECK_MCP_SERVERS: list },
  });
  return rig;
}

test("an MCP server that dies is told, and comes back", async () => {
  const own = { command: process.execPath, args: [script, "stdio"], perRollout: true };
  const made = await startWithServers({ own }, "[own__count()]", "[own__crash()]", "[own__count()]");
  const runId = await made.launch(story({ mcp: [{ server: "own" }] }));
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(await callsOf(runId)).toMatchObject([
    { name: "own__count", output: "1", code: null },
    { name: "own__crash", output: expect.stringContaining("own ended or went away"), code: "mcp_gone" },
    { name: "own__count", output: "1", code: null },
    { name: "finish", code: null },
  ]);
});

test("servers and tools that are not there end the run before its model is made, with the reason", async () => {
  const made = await startWithServers({ files: { command: process.execPath, args: [script, "stdio"] } });
  const reasonOf = async (mcp: object) => {
    const runId = await made.launch(story({ mcp: [mcp] }));
    expect(await made.untilStatus(runId, "completed", "failed")).toBe("failed");
    return (await made.status(runId)).reason;
  };
  expect(await reasonOf({ server: "other" })).toContain('this worker has no MCP server "other"');
  expect(await reasonOf({ server: "files", tools: ["fly"] })).toContain('MCP server files has no tool "fly"');
  expect(made.gpu.models()).toEqual([]);
});

test("a server that does not start is no rollout's fault and no reward", async () => {
  const made = await startWithServers({ missing: { command: "/no/such/program" } });
  const runId = await made.launch(story({ mcp: [{ server: "missing" }] }));
  await made.until("a preparation failed", () =>
    made.value("select 1 from runs where id = $1 and prepare_failures > 0", [runId]),
  );
  expect(await made.value("select count(*)::int from rollouts where run_id = $1 and reward is not null", [runId])).toBe(
    0,
  );
});

test("an environment that lived in a worker that stopped: the rollout begins anew and ends by the environment's word", async () => {
  const walk = gymTool(gridDefinition(3));
  const lines = ["right", "right", "down", "down"].map((move) => `[walk(move="${move}")]`);
  rig = await startRig({
    policy: recite(...lines),
    delayMs: 700,
    parts: {
      tasks: { story: taskOf(["walk"], (answer) => answer === '{"reward":1,"steps":4}') },
      tools: { walk },
    },
  });
  const runId = await rig.launch(story({}));
  await rig.until("both took a step", () =>
    Promise.resolve(
      rig?.value(
        `select 1 from tool_calls c join rollouts r on r.id = c.rollout_id
           where r.run_id = $1 and c.state = 'ended' having count(distinct r.id) = 2`,
        [runId],
      ),
    ),
  );
  const [first] = rig.workers;
  await Promise.all([first?.stop(), rig.addWorker()]);
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(await rows("select reward, ending, attempt from rollouts where run_id = $1", runId)).toEqual([
    { reward: 1, ending: "finish_tool", attempt: 2 },
    { reward: 1, ending: "finish_tool", attempt: 2 },
  ]);
  const lost = await rows(
    `select distinct a.reason from attempts a join rollouts r on r.id = a.rollout_id where r.run_id = $1 and a.attempt = 1`,
    runId,
  );
  expect(lost).toEqual([{ reason: expect.stringContaining("what walk kept went with the worker") }]);
});
