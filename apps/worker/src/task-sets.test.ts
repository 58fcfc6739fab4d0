/** Runs over task sets: several in one run, by weight and with numbers of their own; and those that cannot be opened. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const pointsOf = async (running: Rig, runId: string) => {
  const { rows } = await running.database.pool.query(
    "select name, step, value from metric_points where run_id = $1 order by name, step",
    [runId],
  );
  return (name: string) => rows.filter((row) => row.name === name).map(({ step, value }) => [step, value]);
};

test("weights share out a step; train and held-out numbers come for each set, and the whole is their mean by size", async () => {
  rig = await startRig();
  const runId = await rig.launch(
    smokeConfig({
      // The scripted policy solves the task; with one turn it has no time to.
      taskSets: [
        { name: "key-chain", weight: 3 },
        { name: "key-chain", weight: 1, maxTurns: 1 },
      ],
      algorithm: { groupsPerStep: 8, groupSize: 2 },
      evaluation: { samples: 8 },
    }),
  );
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const count = `select count(*)::int from groups g join steps s on s.id = g.step_id
                  where g.run_id = $1 and s.purpose = $2 and s.step = 1 and g.task_set = $3`;
  expect(await rig.value(count, [runId, "train", 0])).toBe(6);
  expect(await rig.value(count, [runId, "train", 1])).toBe(2);
  const points = await pointsOf(rig, runId);
  expect(points("reward/success/key-chain 1")).toEqual([
    [1, 1],
    [2, 1],
  ]);
  expect(points("reward/success/key-chain 2")).toEqual([
    [1, 0],
    [2, 0],
  ]);
  expect(points("reward/success")).toEqual([
    [1, 0.75],
    [2, 0.75],
  ]);
  expect(points("rollouts/turns/key-chain 2")).toEqual([
    [1, 1],
    [2, 1],
  ]);
  expect(points("evaluate/success/key-chain 1")).toEqual([
    [0, 1],
    [2, 1],
  ]);
  expect(points("evaluate/success/key-chain 2")).toEqual([
    [0, 0],
    [2, 0],
  ]);
  expect(points("evaluate/success")).toEqual([
    [0, 0.75],
    [2, 0.75],
  ]);
});

test("a run of one set has no such numbers", async () => {
  rig = await startRig();
  const runId = await rig.launch(smokeConfig({ evaluation: { samples: 4 } }));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const names = "select count(*)::int from metric_points where run_id = $1 and name like '%key-chain%'";
  expect(await rig.value(names, [runId])).toBe(0);
});

test("a run whose tasks can't be opened, or want a judge that is not there, fails and says why", async () => {
  const home = mkdtempSync(join(tmpdir(), "rolldeck-rows-"));
  try {
    writeFileSync(join(home, "rows.jsonl"), '{"question":"q","context":"c","answers":["a"]}\n');
    rig = await startRig({ env: { ROLLDECK_DATA_ROOTS: home } });
    const reasonOf = async (running: Rig, set: { dataset: string; options?: Record<string, string> }) => {
      const runId = await running.launch(smokeConfig({ taskSets: [{ name: "memory", ...set }] }));
      expect(await running.untilStatus(runId, "completed", "failed")).toBe("failed");
      // Nothing is left to do: a run that fails like this must not be planned for ever.
      const behind = "select wake > handled_wake from runs where id = $1";
      await running.until("the failed run is handled", async () => !(await running.value(behind, [runId])));
      return (await running.status(runId)).reason;
    };
    expect(await reasonOf(rig, { dataset: "gone.jsonl" })).toMatch(/^taskSets\[0\]\.dataset: no data set "gone.jsonl"/);
    expect(await reasonOf(rig, { dataset: "rows.jsonl", options: { verifier: "judge" } })).toMatch(
      /^taskSets\[0\]\.options\.verifier: this server has no judge/,
    );
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

test("a data set that goes away under a run ends it, with its rollouts", async () => {
  const home = mkdtempSync(join(tmpdir(), "rolldeck-rows-"));
  try {
    const path = join(home, "rows.jsonl");
    writeFileSync(path, '{"question":"q","context":"c","answers":["a"]}\n'.repeat(40));
    rig = await startRig({ env: { ROLLDECK_DATA_ROOTS: home }, delayMs: 300 });
    const runId = await rig.launch(smokeConfig({ taskSets: [{ name: "memory", dataset: "rows.jsonl" }] }));
    const active = "select count(*)::int from rollouts where run_id = $1 and state = 'active'";
    await rig.until("rollouts are under way", async () => (await rig?.value(active, [runId])) !== 0);
    rmSync(path);
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("failed");
    const open = "select count(*)::int from rollouts where run_id = $1 and state <> 'settled'";
    const { value, until } = rig;
    await until("every rollout is settled", async () => (await value(open, [runId])) === 0);
    expect((await rig.status(runId)).reason).toMatch(/no data set "rows.jsonl"/);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
