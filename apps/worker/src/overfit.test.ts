/** A preflight and a staged run, on real parts. */
import { readRun } from "@rolldeck/db/reads/read-run";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

/** Task sets and instances by step, in order. */
const drawn = async (own: Rig, runId: string) => {
  const { rows } = await own.database.pool.query(
    `select s.step, array_agg(g.task_set || ':' || g.instance_index order by g.position) as groups
     from steps s join groups g on g.step_id = s.id where s.run_id = $1 and s.purpose = 'train' group by 1 order by 1`,
    [runId],
  );
  return rows.map(({ groups }) => groups);
};

test("overfit draws one batch again and again, and fails where its reward does not rise", async () => {
  rig = await startRig();
  // The scripted policy always succeeds: there is nothing to learn.
  const runId = await rig.launch(smokeConfig({ preflight: "overfit", budget: { steps: 5 } }));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const batches = await drawn(rig, runId);
  expect(batches).toHaveLength(5);
  for (const batch of batches) expect(batch).toEqual(batches[0]);
  expect(new Set(batches[0]).size).toBe(4);
  const { preflight } = await readRun(rig.database.pool, runId);
  expect(preflight).toMatchObject({ ok: false, steps: 5, first: 1, last: 1, slope: 0 });
  expect(preflight?.text).toContain("nothing to learn");
});

test("overfit passes where the reward rises, and says by how much", async () => {
  rig = await startRig();
  const runId = await rig.launch(smokeConfig({ preflight: "overfit", budget: { steps: 5 } }));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  // The scripted policy can't learn: its points are written over.
  await rig.database.pool.query(
    "update metric_points set value = step / 10.0 where run_id = $1 and name = 'reward/mean'",
    [runId],
  );
  const { preflight } = await readRun(rig.database.pool, runId);
  expect(preflight).toMatchObject({ ok: true, steps: 5, first: 0.1, last: 0.5 });
  expect(preflight?.slope).toBeCloseTo(0.1, 12);
});

test("a run of two stages trains the second set from where the first left the weights", async () => {
  rig = await startRig();
  const runId = await rig.launch(
    smokeConfig({
      taskSets: [
        { name: "key-chain", untilStep: 1 },
        { name: "key-chain", fromStep: 2 },
      ],
      budget: { steps: 2 },
    }),
  );
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const stages = (await drawn(rig, runId)).map((groups: string[]) => new Set(groups.map((group) => group[0])));
  expect(stages).toEqual([new Set(["0"]), new Set(["1"])]);
  expect(await rig.value("select serving_version from runs where id = $1", [runId])).toBe(2);
});
