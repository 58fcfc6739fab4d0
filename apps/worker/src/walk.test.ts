/** The main walk, from a launched run to its last step, on both queues. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

describe.each(["postgres", "redis"] as const)("on %s", (queue) => {
  test("two steps settle, train and complete", async () => {
    rig = await startRig({ queue });
    const runId = await rig.launch(smokeConfig({ evaluation: { samples: 8 } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    const count = (sql: string) => rig?.value(sql, [runId]);
    expect(await count("select count(*)::int from rollouts where run_id = $1 and outcome = 'completed'")).toBe(48);
    expect(await count("select step from runs where id = $1")).toBe(2);
    expect(await count("select serving_version from runs where id = $1")).toBe(2);
    // Held out at the start and at the end, and both updates.
    const { rows: points } = await rig.database.pool.query(
      "select name, step, value from metric_points where run_id = $1 order by name, step",
      [runId],
    );
    const steps = (name: string) => points.filter((point) => point.name === name).map((point) => point.step);
    expect(steps("reward/mean")).toEqual([1, 2]);
    expect(steps("policy/grad-norm")).toEqual([1, 2]);
    expect(steps("evaluate/success")).toEqual([0, 2]);
    expect(points.find((point) => point.name === "evaluate/success")?.value).toBe(1);
    expect(rig.gpu.stats.requests.get("/api/v1/optim_step")).toBe(2);
    // Every turn of a synchronous run was sampled from the version its step trains on (or measures).
    const stale = `select count(*)::int from transitions t join rollouts r on r.id = t.rollout_id join steps s on s.id = r.step_id
                    where r.run_id = $1 and t.policy_version <> s.step - (s.purpose = 'train')::int`;
    expect(await count(stale)).toBe(0);
    expect(await count("select count(*)::int from pool_leases where run_id = $1")).toBe(0);
    expect(await count("select count(*)::int from checkpoints where run_id = $1 and version = 2 and bytes > 0")).toBe(
      1,
    );
  });
});

test("512 rollouts over two workers settle exactly once; the log has no gap", async () => {
  rig = await startRig({ workers: 2, delayMs: 5 });
  const runId = await rig.launch(
    smokeConfig({
      dispatcher: { name: "pipeline", bounds: { init: 128, run: 256, evaluate: 64 } },
      algorithm: { groupsPerStep: 64, groupSize: 8 },
      budget: { steps: 1 },
    }),
  );
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows: settled } = await rig.database.pool.query(
    `select rollout_id, count(*)::int as times from events
      where run_id = $1 and type = 'rollout-status' and body->>'state' = 'settled' group by 1`,
    [runId],
  );
  expect(settled).toHaveLength(512);
  expect(settled.every(({ times }) => times === 1)).toBe(true);
  const gaps = "select count(*)::int from events where run_id = $1 having count(*) <> max(seq) or min(seq) <> 1";
  expect(await rig.value(gaps, [runId])).toBeUndefined();
  const twice = `select count(*)::int from (select rollout_id, attempt, turn from transitions
                   group by 1, 2, 3 having count(*) > 1) t`;
  expect(await rig.value(twice)).toBe(0);
  expect(await rig.value("select max(attempt) from rollouts where run_id = $1", [runId])).toBe(1);
});
