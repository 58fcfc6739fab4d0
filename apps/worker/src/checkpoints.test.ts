/** What a run keeps and removes, and runs that begin with, or go back to, what was kept. */
import { restoreRun } from "@rolldeck/db/hot/restore-run";
import { readLineage } from "@rolldeck/db/reads/read-checkpoints";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { pinCheckpoint } from "@rolldeck/db/training/pin-checkpoint";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.close());

const trainer = (steps: number, keep: number, more: object = {}) =>
  smokeConfig({
    algorithm: { groupsPerStep: 2, groupSize: 4, filterZeroVariance: false },
    checkpoints: { every: 1, keep },
    budget: { steps },
    ...more,
  });
const from = (run: string, version: number | null) => ({
  model: { name: "quickstart", warmStart: null, startFrom: { run, version } },
});

/** Versions by the state of their rows. */
const versions = (runId: string, state: string) =>
  rig.value(
    "select coalesce(array_agg(version order by version), '{}') from checkpoints where run_id = $1 and state = $2",
    [runId, state],
  );
/** Versions whose files are on the server's disk. */
const onDisk = (runId: string) =>
  rig.gpu
    .checkpoints()
    .filter((path) => path.includes(`/${runId}-`))
    .map((path) => Number(/step-(\d+)-/.exec(path)?.[1]));
const freed = (runId: string) =>
  rig.until(
    "its model is put away",
    async () => !(await rig.value("select model_boot_id is not null from runs where id = $1", [runId])),
  );

test("what a run no longer keeps is removed: row, event and files; what is pinned stays", async () => {
  const runId = await rig.launch(trainer(6, 2));
  await rig.until(
    "the first one",
    async () => await rig.value("select count(*)::int from checkpoints where run_id = $1", [runId]),
  );
  await pinCheckpoint(rig.database.pool, { runId, version: 1 }, true, "me");
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  await freed(runId);
  expect(await versions(runId, "complete")).toEqual([1, 5, 6]);
  expect(await versions(runId, "removed")).toEqual([2, 3, 4]);
  expect(onDisk(runId)).toEqual([1, 5, 6]);
  const removed = (await rig.events(runId)).filter(({ type }) => type === "checkpoint-removed");
  expect(removed.map((body) => "version" in body && body.version)).toEqual([2, 3, 4]);
});

test("files that could not be deleted when their row went are deleted later", async () => {
  rig.gpu.fail({
    path: /training_runs/,
    kind: "answer",
    status: 409,
    text: '{"detail":"ordered","code":"fenced","field":null}',
    times: 3,
  });
  const runId = await rig.launch(trainer(3, 1));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  await rig.until("its files are deleted", async () => onDisk(runId).join() === "3");
  expect(await versions(runId, "removed")).toEqual([1, 2]);
});

test("a run that is set back to a checkpoint trains on from it, and both branches stay", async () => {
  const { pool } = rig.database;
  const runId = await rig.launch(trainer(4, 10));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  await freed(runId);
  const steps = (of: string) =>
    rig.value(
      "select array_agg(step order by step) from steps where run_id = $1 and purpose = 'train' and state = 'done'",
      [of],
    );
  const { supersededRunId } = await restoreRun(pool, runId, 2, "me");
  rig.workers[0]?.context.requestReconcile(runId);
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(await steps(runId)).toEqual([1, 2, 3, 4]);
  expect(await steps(supersededRunId ?? "")).toEqual([3, 4]);
  const adopted = (await rig.events(runId)).filter(({ type }) => type === "model-adopted");
  expect(adopted.at(-1)).toMatchObject({ checkpoint: expect.stringContaining("step-000002"), replayed: 0 });
  // Each branch has its own weights of the same version.
  const paths =
    "select array_agg(distinct path) from checkpoints where run_id = any($1) and version = 4 and state = 'complete'";
  expect(await rig.value(paths, [[runId, supersededRunId]])).toHaveLength(2);
  const child = await rig.launch(trainer(1, 1, from(supersededRunId ?? "", 4)));
  expect(await rig.untilStatus(child, "completed", "failed")).toBe("completed");
});

test.each(["completed", "failed", "running"] as const)(
  "a fork of a run that is %s begins with its weights",
  async (status) => {
    const { pool } = rig.database;
    const parent = await rig.launch(trainer(status === "running" ? 500 : 2, 3));
    await rig.until(
      "two checkpoints",
      async () => Number(await rig.value("select max(version) from checkpoints where run_id = $1", [parent])) >= 2,
    );
    if (status !== "running") await rig.untilStatus(parent, "completed");
    if (status === "failed")
      await pool.query("update runs set status = 'failed', reason = 'by hand' where id = $1", [parent]);
    const child = await rig.launch(trainer(1, 1, from(parent, null)));
    expect(await rig.untilStatus(child, "completed", "failed")).toBe("completed");
    const { parent: found } = await readLineage(pool, child);
    expect(found).toMatchObject({ runId: parent, relation: "fork", version: expect.any(Number) });
    expect((await readLineage(pool, parent)).children.map(({ runId }) => runId)).toContain(child);
    const path = "select path from checkpoints where run_id = $1 and version = $2";
    expect(await rig.value(path, [child, 0])).toBe(await rig.value(path, [parent, found?.version]));
    if (status === "running") {
      // The parent goes on, and keeps what the child began with.
      const now = Number(await rig.value("select step from runs where id = $1", [parent]));
      await rig.until(
        "it has moved on",
        async () => Number(await rig.value("select step from runs where id = $1", [parent])) > now + 5,
      );
      expect(await versions(parent, "complete")).toContain(found?.version);
      await moveRun(pool, parent, "stopping", null);
      await rig.untilStatus(parent, "stopped");
    }
  },
);

test("a fork whose beginning is gone ends with that reason, before its first step or after it; its parent's rows stay", async () => {
  const parent = await rig.launch(trainer(2, 3));
  expect(await rig.untilStatus(parent, "completed", "failed")).toBe("completed");
  await freed(parent);
  const fork = trainer(500, 1, { ...from(parent, null), checkpoints: { every: 500, keep: 1 } });
  const trained = await rig.launch(fork);
  await rig.until(
    "its first step",
    async () => Number(await rig.value("select step from runs where id = $1", [trained])) > 0,
  );
  rig.gpu.loseCheckpoints();
  await rig.gpu.restart();
  expect(await rig.untilStatus(trained, "completed", "failed")).toBe("failed");
  expect((await rig.status(trained)).reason).toContain("no longer has the weights that this run began with");
  const late = await rig.launch(trainer(1, 1, from(parent, 2)));
  expect(await rig.untilStatus(late, "completed", "failed")).toBe("failed");
  expect((await rig.status(late)).reason).toContain(`can't load the checkpoint of version 2 of run ${parent}`);
  for (const run of [trained, late])
    expect((await rig.events(run)).filter(({ type }) => type === "checkpoint-lost")).toMatchObject([{ version: 0 }]);
  expect(await versions(parent, "complete")).toEqual([1, 2]);
});
