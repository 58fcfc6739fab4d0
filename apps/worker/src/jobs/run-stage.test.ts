/** The whole agent loop on the real worker, queue and tables: what is committed is what is read, continued and trained. */
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { readTrajectory } from "@rolldeck/db/hot/read-trajectory";
import { readTurns } from "@rolldeck/db/reads/read-turns";
import { decodeMask } from "@rolldeck/rl/mask-reasons";
import { tools } from "@rolldeck/tools/registry";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const story: Task = {
  name: "story",
  description: "Every kind of turn",
  sandbox: "none",
  tools: ["echo", "delegate", "drop_old_observations", "summarise_history", "finish"],
  defaults: { maxTurns: 9, maxContextTokens: 4096, hints: ["repeated-failure"] },
  size: () => null,
  instance: (split, index) => ({ instanceId: `${index}`, split, index, state: {} }),
  messages: () => [{ role: "user", content: "find x" }],
  verify: async (_, { finalAnswer }) => ({
    reward: 1,
    success: finalAnswer === "7",
    parts: { answer: 1 },
    notes: null,
  }),
};
const echo: Tool = {
  name: "echo",
  description: "",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  idempotent: true,
  call: async ({ text }) =>
    text === "long"
      ? { output: `<${"y".repeat(400)}>` }
      : { output: `no ${text}`, error: { code: "none", message: "no" } },
};

/** What to say follows from what is seen. */
function say({ prompt }: { readonly prompt: string }): string {
  if (prompt.startsWith("<|user|>help"))
    return prompt.includes("<|tool|>") ? '[finish(answer="h9")]' : '[echo(text="long")]';
  if (prompt.includes("so far")) return '[finish(answer="7")]';
  if (prompt.includes("[an older")) return '[summarise_history(summary="so far")]';
  if (prompt.includes("h9")) return "[drop_old_observations(keep=1)]";
  if (prompt.includes("hint:")) return '[echo(text="b"), delegate(task="help")]';
  return prompt.includes("no a") ? '[echo(text="c")]' : '[echo(text="a")]';
}

const config = smokeConfig({
  taskSets: [{ name: "story" }],
  agent: {
    maxContextTokens: 4096,
    describeTools: false,
    maxOutputTokens: 64,
    maxTurns: 9,
    sampling: { maxTokensPerTurn: 64 },
  },
  algorithm: { groupsPerStep: 1, groupSize: 2, filterZeroVariance: false },
  budget: { steps: 1 },
});
const parts = { tasks: { story }, tools: { ...tools, echo } };

async function trajectories(made: Rig, runId: string) {
  const { rows } = await made.database.pool.query(
    "select id, attempt from rollouts where run_id = $1 order by sample",
    [runId],
  );
  return Promise.all(
    rows.map(async ({ id, attempt }) => ({ id, ...(await readTrajectory(made.database.pool, id, attempt)) })),
  );
}

test("sub-agents, hints, changed contexts and caps are stored as they happened and trained once each", async () => {
  rig = await startRig({ policy: say, parts });
  const made = rig;
  const runId = await made.launch(config);
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  const [first] = await trajectories(made, runId);
  const { turns = [], segments = [] } = first ?? {};
  expect(turns.map(({ thread, calls }) => [thread, calls.map(({ name }) => name).join()])).toEqual([
    ["", "echo"],
    ["", "echo"],
    ["", "echo,delegate"],
    ["2.1", "echo"],
    ["2.1", "finish"],
    ["", "drop_old_observations"],
    ["", "summarise_history"],
    ["", "finish"],
  ]);
  expect(turns[2]?.results.map((result) => result?.output)).toEqual(["no b", "h9"]);
  expect(turns.map(({ nextRanges }) => nextRanges !== null)).toEqual([
    false,
    false,
    true,
    false,
    false,
    true,
    true,
    false,
  ]);
  const page = { rolloutId: first?.id ?? "", attempt: 1, after: -1, limit: 20 };
  const shown = await readTurns(made.database.pool, page);
  // The turn that handed work on has ranges too, and lost nothing of its context.
  expect(shown.turns.map(({ contextChange }) => contextChange !== null)).toEqual(
    turns.map(({ turn }) => turn === 5 || turn === 6),
  );
  expect(segments.map(({ origin }) => origin)).toContain("hint");
  expect(turns[3]?.results[0]).toMatchObject({ wholeBytes: 402, output: expect.stringContaining("tokens cut") });
  const artifact = await made.value("select turn from artifacts where rollout_id = $1", [first?.id]);
  expect(artifact).toBe(3);
  const { rows } = await made.database.pool.query("select mask from training_rows where rollout_id = $1", [first?.id]);
  expect(rows.length).toBe(4);
  const trained = rows.flatMap(({ mask }) => decodeMask(mask)).filter((reason) => reason === null).length;
  expect(trained).toBe(turns.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0));
});

test("a rollout handed to another worker anywhere goes on as if nothing had happened", async () => {
  rig = await startRig({ policy: say, parts, delayMs: 120 });
  const made = rig;
  const runId = await made.launch(config);
  // The first worker is stopped while the sub-agent works.
  await made.until("a sub-agent's turn", () => made.value("select 1 from transitions where thread <> ''"));
  await made.addWorker();
  await made.workers[0]?.stop();
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  for (const { turns } of await trajectories(made, runId)) {
    expect(turns.map(({ thread }) => thread)).toEqual(["", "", "", "2.1", "2.1", "", "", ""]);
    expect(turns.at(-1)?.results[0]?.finalAnswer).toBe("7");
  }
  expect(await made.value("select max(attempt) from rollouts")).toBe(1);
  expect(await made.value("select max(claim)::int from rollouts")).toBeGreaterThan(3);
});
