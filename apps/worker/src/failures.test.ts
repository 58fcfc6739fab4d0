/** A failure is typed, counted and bounded; it never becomes a reward. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { tasks } from "@rolldeck/tasks/registry";
import { tools } from "@rolldeck/tools/registry";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const oneStep = smokeConfig({ algorithm: { groupsPerStep: 2, groupSize: 2 }, budget: { steps: 1 } });
const keyChain = tasks["key-chain"];

test("a verifier that fails twice is asked again; the third verdict counts", async () => {
  const tries = new Map<string, number>();
  const flaky = {
    ...keyChain,
    verify: async (...[instance, rollout]: Parameters<typeof keyChain.verify>) => {
      const key = `${instance.instanceId}`;
      const tried = (tries.get(key) ?? 0) + 1;
      tries.set(key, tried);
      // Two rollouts share an instance: the first four looks at it fail.
      if (tried <= 4) throw new Error("the grader crashed");
      return keyChain.verify(instance, rollout);
    },
  };
  rig = await startRig({ parts: { tasks: { "key-chain": flaky } } });
  const runId = await rig.launch(oneStep);
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows } = await rig.database.pool.query("select * from rollouts where run_id = $1", [runId]);
  expect(rows.map(({ outcome, attempt, reward }) => ({ outcome, attempt, reward }))).toEqual(
    Array.from({ length: 4 }, () => ({ outcome: "completed", attempt: 1, reward: 1 })),
  );
  expect(rows.reduce((sum, row) => sum + row.evaluate_failures, 0)).toBe(8);
});

test("a verifier that always fails leaves the rollout unscored, never with a reward of 0", async () => {
  const broken = {
    ...keyChain,
    verify: () => Promise.reject(new BoundaryError("verifier", "crashed", "the grader crashed")),
  };
  rig = await startRig({ parts: { tasks: { "key-chain": broken } } });
  const runId = await rig.launch(oneStep);
  // One statement: two would let the step be created between them and look settled.
  await rig.until("all settled", async () =>
    rig?.value(
      `select 1 from rollouts r join steps s on s.id = r.step_id where r.run_id = $1 and s.step = 1
        having count(*) > 0 and bool_and(r.state = 'settled')`,
      [runId],
    ),
  );
  const { rows } = await rig.database.pool.query(
    `select r.outcome, r.ending, r.reward, r.evaluate_failures, r.attempt from rollouts r join steps s on s.id = r.step_id
      where r.run_id = $1 and s.step = 1`,
    [runId],
  );
  expect(rows).toEqual(
    Array.from({ length: 4 }, () => ({
      outcome: "failed",
      ending: "verifier_error",
      reward: null,
      evaluate_failures: 3,
      attempt: 1,
    })),
  );
  expect(
    await rig.value("select count(*)::int from metric_points where run_id = $1 and name like 'reward/%'", [runId]),
  ).toBe(0);
});

test("a reward that is not finite is the verifier's error", async () => {
  const nan = {
    ...keyChain,
    verify: async () => ({ reward: Number.NaN, success: false, parts: {}, notes: null }),
  };
  rig = await startRig({ parts: { tasks: { "key-chain": nan } } });
  const runId = await rig.launch(oneStep);
  await rig.until("a rollout gave up", async () =>
    rig?.value("select 1 from rollouts where run_id = $1 and outcome = 'failed' and ending = 'verifier_error'", [
      runId,
    ]),
  );
});

test("infrastructure attempts are bounded; siblings and their groups go on", async () => {
  const lost = {
    ...tools,
    get: {
      ...tools.get,
      call: (...[args, context]: Parameters<typeof tools.get.call>) =>
        context.instance.start === args.k && Number(context.instance.lookups) > 2
          ? Promise.reject(new BoundaryError("sandbox", "gone", "the sandbox is gone"))
          : tools.get.call(args, context),
    },
  };
  rig = await startRig({ parts: { tools: lost } });
  const runId = await rig.launch(smokeConfig({ algorithm: { groupsPerStep: 8, groupSize: 2 }, budget: { steps: 1 } }));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows } = await rig.database.pool.query(
    "select outcome, ending, attempt, infrastructure_failures, reward from rollouts where run_id = $1",
    [runId],
  );
  const failed = rows.filter(({ outcome }) => outcome === "failed");
  expect(failed.length).toBeGreaterThan(0);
  expect(failed.length).toBeLessThan(rows.length);
  for (const row of failed) {
    expect(row).toMatchObject({ ending: "sandbox_lost", attempt: 3, infrastructure_failures: 3, reward: null });
  }
  for (const row of rows.filter(({ outcome }) => outcome === "completed")) expect(row.reward).toBe(1);
});

test("fault 27: whole groups that fail in init, run and evaluate are kept apart, have no reward, and the step trains the rest", async () => {
  const roles = ["init", "run", "evaluate", "none"] as const;
  const planned = new Map<number, (typeof roles)[number]>();
  const roleOf = new Map<string, (typeof roles)[number]>();
  const task = {
    ...keyChain,
    instance: (...[split, index]: Parameters<typeof keyChain.instance>) => {
      const instance = keyChain.instance(split, index);
      const known = planned.get(index);
      const role = known ?? roles[planned.size % roles.length] ?? "none";
      planned.set(index, role);
      roleOf.set(JSON.stringify(instance.state), role);
      // It was there when its group was planned.
      if (known === "init") throw new Error("the data set is gone");
      return instance;
    },
    verify: async (...[instance, rollout]: Parameters<typeof keyChain.verify>) => {
      if (roleOf.get(JSON.stringify(instance.state)) === "evaluate") throw new Error("the grader crashed");
      return keyChain.verify(instance, rollout);
    },
  };
  const get = {
    ...tools.get,
    call: (...[args, context]: Parameters<typeof tools.get.call>) =>
      roleOf.get(JSON.stringify(context.instance)) === "run"
        ? Promise.reject(new BoundaryError("sandbox", "gone", "the sandbox is gone"))
        : tools.get.call(args, context),
  };
  rig = await startRig({ parts: { tasks: { "key-chain": task }, tools: { ...tools, get } } });
  const algorithm = { groupsPerStep: 4, groupSize: 2, groupPolicy: "shrink", filterZeroVariance: false } as const;
  const runId = await rig.launch(smokeConfig({ algorithm, budget: { steps: 1 }, evaluation: { every: 0 } }));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows } = await rig.database.pool.query(
    `select o.outcome, o.ending, o.reward, o.instance_index as index,
       exists (select from training_rows t where t.rollout_id = o.id) as trained
     from (select r.*, g.instance_index from rollouts r join groups g on g.id = r.group_id
       join steps s on s.id = r.step_id where r.run_id = $1 and s.purpose = 'train') o`,
    [runId],
  );
  const scored = { outcome: "completed", ending: "finish_tool", reward: 1, trained: true };
  const unscored = { outcome: "failed", reward: null, trained: false };
  const expected = {
    init: { ...unscored, ending: "infrastructure" },
    run: { ...unscored, ending: "sandbox_lost" },
    evaluate: { ...unscored, ending: "verifier_error" },
    none: scored,
  };
  for (const role of roles) {
    const own = rows.filter(({ index }) => planned.get(index) === role).map(({ index: _, ...row }) => row);
    expect(own, role).toEqual([expected[role], expected[role]]);
  }
  const point = (name: string) =>
    rig?.value("select value from metric_points where run_id = $1 and name = $2", [runId, name]);
  expect(await point("reward/mean")).toBe(1);
  expect(await point("rollouts/failed")).toBe(0.75);
  const notes = (await rig.events(runId)).flatMap((body) => (body.type === "note" ? [body.message] : []));
  expect(notes).toContainEqual(expect.stringMatching(/^Step 1: of 8 rollouts 2 are usable; 6 × its group/u));
});
