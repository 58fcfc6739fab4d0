/** `dispatcher.restartTail` in a whole run: what hangs long after its instance's usual time is begun anew, and nothing waits for it. */
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { poolLedger } from "@rolldeck/db/reconcile/pools";
import { finish } from "@rolldeck/tools/finish";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";
import { sleep } from "./wait-for.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const task: Task = {
  name: "story",
  description: "",
  sandbox: "none",
  tools: ["work", "finish"],
  defaults: { maxTurns: 20, maxContextTokens: 8192 },
  size: () => 1,
  instance: (split, index) => ({ instanceId: `${split}-${index}`, split, index, state: { seed: 0 } }),
  messages: () => [{ role: "user", content: "go" }],
  verify: async (_instance, { finalAnswer }) => {
    const success = finalAnswer === "done";
    return { reward: success ? 1 : 0, success, parts: {}, notes: null };
  },
};
const lines = ["[work()]", '[finish(answer="done")]'];
const policy = ({ prompt }: { prompt: string }) => lines[prompt.split("<|assistant|>").length - 2] ?? "";
const config = (restartTail: number | null) =>
  smokeConfig({
    taskSets: [{ name: "story" }],
    dispatcher: { restartTail },
    agent: { dialect: "pythonic", describeTools: false, maxContextTokens: 8192, maxTurns: 20 },
    algorithm: { groupsPerStep: 1, groupSize: 3 },
    budget: { steps: 1 },
  });

test("a call that hangs costs its rollout one attempt, not its step", async () => {
  let hangs = 0;
  const work: Tool = {
    ...{ name: "work", description: "", parameters: { type: "object", properties: {} }, idempotent: true },
    call: async (_args, { signal }) => {
      if (hangs-- > 0) {
        const reject = await new Promise<unknown>((resolve) =>
          signal.addEventListener("abort", () => resolve(signal.reason), { once: true }),
        );
        throw reject;
      }
      await sleep(150);
      return { output: "worked" };
    },
  };
  const made = await startRig({ policy, parts: { tasks: { story: task }, tools: { work, finish } } });
  rig = made;
  // What an instance takes is learned from earlier runs.
  expect(await made.untilStatus(await made.launch(config(null)), "completed", "failed")).toBe("completed");
  hangs = 1;
  const runId = await made.launch(config(10));
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows } = await made.database.pool.query(
    `select r.outcome, r.reward, r.attempt, a.reason, a.turns from rollouts r
       left join attempts a on a.rollout_id = r.id and a.attempt = 1 where r.run_id = $1 order by r.attempt desc`,
    [runId],
  );
  expect(rows.map(({ outcome, reward }) => ({ outcome, reward }))).toEqual(
    Array.from({ length: 3 }, () => ({ outcome: "completed", reward: 1 })),
  );
  expect(rows[0].attempt).toBeGreaterThan(1);
  expect(rows[0].reason).toMatch(/^restarted: it ran \d+\.\d times as long as its instance took before$/);
  await made.until("nobody holds it", async () => made.workers.every(({ context }) => context.leases.size === 0));
  expect(await poolLedger(made.database.pool)).toEqual([]);
});
