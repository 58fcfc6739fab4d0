/** Faults of queues and run state in whole runs on real parts: deliveries that double, parts that are missing, versions under way. */
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { cancelRollout } from "@rolldeck/db/hot/cancel-rollout";
import { poolLedger } from "@rolldeck/db/reconcile/pools";
import { tasks } from "@rolldeck/tasks/registry";
import { finish } from "@rolldeck/tools/finish";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";
import { sleep } from "./wait-for.ts";
import type { WorkerContext } from "./worker-context.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});
type Jobs = Parameters<WorkerContext["enqueue"]>[0];
const keyChain = tasks["key-chain"];

test("every job comes three times, at once and late, to two workers: one set of turns, one reward, one update (fault 41)", async () => {
  const made = await startRig({ workers: 2, delayMs: 40 });
  rig = made;
  const seen: Jobs[number][] = [];
  for (const { context } of made.workers) {
    const enqueue = context.enqueue.bind(context);
    const thrice = async (jobs: Jobs): Promise<void> => {
      seen.push(...jobs);
      await enqueue([...jobs, ...jobs]);
      void sleep(120).then(() => enqueue(jobs).catch(() => undefined));
    };
    Object.assign(context, { enqueue: thrice });
  }
  const runId = await made.launch(smokeConfig());
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  const stages = seen.filter(({ name }) => name === "stage" || name === "run-stage");
  expect(stages.length).toBeGreaterThanOrEqual(2 * 16 * 3);
  // Long after, too: nothing moves any more.
  const log = "select count(*)::int from events where run_id = $1";
  const before = await made.value(log, [runId]);
  await made.workers[1]?.context.enqueue(seen);
  await sleep(1_500);
  expect(await made.value(log, [runId])).toBe(before);
  const { rows } = await made.database.pool.query(
    "select attempt, outcome, reward, turns, id from rollouts where run_id = $1",
    [runId],
  );
  expect(rows.map(({ attempt, outcome, reward }) => ({ attempt, outcome, reward }))).toEqual(
    rows.map(() => ({ attempt: 1, outcome: "completed", reward: 1 })),
  );
  const settled = (await made.events(runId)).filter(
    (body) => body.type === "rollout-status" && body.state === "settled",
  );
  expect(settled).toHaveLength(rows.length);
  // No turn was sampled that is not there, and no step was updated twice.
  expect(made.gpu.stats.samples).toBe(rows.reduce((sum, { turns }) => sum + turns, 0));
  expect(made.gpu.stats.requests.get("/api/v1/optim_step")).toBe(2);
  expect(await poolLedger(made.database.pool)).toEqual([]);
});

test("a step of four: two complete, one fails for good, one is cancelled while it waits; the two are trained (fault 43)", async () => {
  let failing: string | null = null;
  const flawed: Task = {
    ...keyChain,
    verify: async (...[instance, rollout]: Parameters<Task["verify"]>) => {
      if (instance.instanceId === failing) throw new Error("the grader crashed");
      return keyChain.verify(instance, rollout);
    },
  };
  const made = await startRig({ delayMs: 400, parts: { tasks: { "key-chain": flawed } } });
  rig = made;
  const runId = await made.launch(
    smokeConfig({
      dispatcher: { bounds: { init: 8, run: 3, evaluate: 8 } },
      algorithm: { groupsPerStep: 2, groupSize: 2 },
      budget: { steps: 1 },
    }),
  );
  const waiting = `select r.id, r.group_id, g.instance_id from rollouts r join groups g on g.id = r.group_id
    where r.run_id = $1 and r.stage = 'run' and r.state = 'waiting' and
      (select count(*) from rollouts o where o.run_id = $1 and o.stage = 'run' and o.state = 'active') = 3`;
  const last = await made.until("one waits for its slot", async () => {
    const { rows } = await made.database.pool.query(waiting, [runId]);
    return rows.length === 1 ? rows[0] : null;
  });
  failing = String(last.instance_id);
  expect(await cancelRollout(made.database.pool, String(last.id), "by hand")).toEqual({ runId, cancelled: 1 });
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows } = await made.database.pool.query(
    `select r.ending, r.outcome, exists (select from training_rows t where t.rollout_id = r.id) as trained
     from rollouts r where r.run_id = $1 order by r.group_id = $2, r.outcome`,
    [runId, last.group_id],
  );
  const complete = { outcome: "completed", trained: true };
  expect(rows).toMatchObject([
    complete,
    complete,
    { outcome: "cancelled", trained: false },
    { outcome: "failed", ending: "verifier_error", trained: false },
  ]);
  expect(await poolLedger(made.database.pool)).toEqual([]);
});

test("a rollout that is quiet for longer than its lease stays with its worker, and its run stays running (fault 44)", async () => {
  const made = await startRig({ delayMs: 17_000, policy: () => '[finish(answer="quiet")]' });
  rig = made;
  const runId = await made.launch(smokeConfig({ algorithm: { groupsPerStep: 1, groupSize: 2 }, budget: { steps: 1 } }));
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows } = await made.database.pool.query(
    "select attempt, deliveries, infrastructure_failures as failures, outcome from rollouts where run_id = $1",
    [runId],
  );
  expect(rows.map(({ attempt, failures, outcome }) => ({ attempt, failures, outcome }))).toEqual(
    Array.from({ length: 2 }, () => ({ attempt: 1, failures: 0, outcome: "completed" })),
  );
  expect(made.gpu.stats.samples).toBe(2);
});

test("weights that are pushed under way: each turn has its own version, age is newest less oldest (fault 47)", async () => {
  const lines = ["[work()]", '[finish(answer="done")]'];
  const task: Task = {
    ...{ name: "story", description: "", sandbox: "none", tools: ["work", "finish"], size: () => null },
    defaults: { maxTurns: 20, maxContextTokens: 8192 },
    instance: (split, index) => ({ instanceId: `${split}-${index}`, split, index, state: { index } }),
    messages: () => [{ role: "user", content: "go" }],
    verify: async () => ({ reward: 1, success: true, parts: {}, notes: null }),
  };
  const served = { version: 0 };
  let first: unknown = null;
  const work: Tool = {
    ...{ name: "work", description: "", parameters: { type: "object", properties: {} }, idempotent: true },
    // The first instance goes on at once; all others once its update serves.
    call: async (_args, { instance, signal }) => {
      first ??= instance.index;
      if (instance.index === first) return { output: "worked" };
      while (served.version < 1 && !signal.aborted) await sleep(20);
      // A worker may know of a version half a second later.
      await sleep(600);
      return { output: "worked" };
    },
  };
  const policy = ({ prompt }: { prompt: string }) => lines[prompt.split("<|assistant|>").length - 2] ?? "";
  const made = await startRig({ policy, parts: { tasks: { story: task }, tools: { work, finish } } });
  rig = made;
  const runId = await made.launch(
    smokeConfig({
      taskSets: [{ name: "story" }],
      dispatcher: { name: "async", maxStaleness: 1 },
      agent: { dialect: "pythonic", describeTools: false, maxContextTokens: 8192, maxTurns: 20 },
      algorithm: { groupsPerStep: 1, groupSize: 2 },
      budget: { steps: 2 },
    }),
  );
  await made.until("an update serves", async () => {
    served.version = Number(await made.value("select coalesce(serving_version, 0) from runs where id = $1", [runId]));
    return served.version >= 1;
  });
  expect(await made.untilStatus(runId, "completed", "failed")).toBe("completed");
  const versions = `select array_agg(distinct v order by v) from (
    select array_agg(t.policy_version order by t.turn) as v from transitions t join rollouts r on r.id = t.rollout_id
    join steps s on s.id = r.step_id where r.run_id = $1 and s.purpose = 'train' and s.step = $2 group by r.id) x`;
  expect(await made.value(versions, [runId, 1])).toEqual([[0, 0]]);
  expect(await made.value(versions, [runId, 2])).toEqual([[0, 1]]);
  expect(
    await made.value(
      "select array_agg(distinct r.first_version) from rollouts r join steps s on s.id = r.step_id where s.run_id = $1 and s.step = 2",
      [runId],
    ),
  ).toEqual([0]);
  const stale = "select value from metric_points where run_id = $1 and name = 'staleness/max' and step = $2";
  expect(await made.value(stale, [runId, 1])).toBe(0);
  expect(await made.value(stale, [runId, 2])).toBe(1);
});
