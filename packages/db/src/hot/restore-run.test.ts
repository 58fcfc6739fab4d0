import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedCheckpoint } from "../../testing/seed-checkpoint.ts";
import { seedRun, seedStep } from "../../testing/seed-run.ts";
import { readCheckpoints, readLineage } from "../reads/read-checkpoints.ts";
import { readEvents } from "../reads/read-events.ts";
import { readRun } from "../reads/read-run.ts";
import { readRunUsage } from "../reads/read-run-usage.ts";
import { createRun } from "../runs/create-run.ts";
import { readConfig } from "../runs/read-config.ts";
import { newestCheckpoint } from "../training/checkpoints.ts";
import { restoreRun } from "./restore-run.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** A run that took `steps` steps, with an evaluation at 0 and at the end, and checkpoints. */
async function trained(steps: number, checkpoints: readonly number[], status: RunStatus = "stopped"): Promise<string> {
  const { pool } = database;
  const runId = await seedRun(pool, { status, endedAt: "2026-01-01T00:00:00Z" });
  await train(runId, 1, steps, checkpoints);
  await seedStep(pool, runId, { step: 0, purpose: "evaluate", rollouts: [{ reward: 1, ending: "finish_tool" }] });
  return runId;
}

/** Steps from … to as updates write them, each with one scored rollout. */
async function train(runId: string, from: number, to: number, checkpoints: readonly number[]): Promise<void> {
  const { pool } = database;
  for (let step = from; step <= to; step++) {
    const { rolloutIds } = await seedStep(pool, runId, { step, rollouts: [{ reward: step, ending: "finish_tool" }] });
    await pool.query(
      `insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at) values ($1, 1, 'run', $2, now())`,
      [rolloutIds[0], runId],
    );
    await pool.query("update rollouts set sampled_tokens = 10 where id = $1", [rolloutIds[0]]);
    await pool.query(
      "insert into metric_points (run_id, name, step, value) values ($1, 'reward/mean', $2::int, $2::int)",
      [runId, step],
    );
    await pool.query(
      "insert into policy_versions (run_id, version, step, state, boot_id) values ($1, $2::int, $2::int, 'retired', 'b')",
      [runId, step],
    );
  }
  for (const version of checkpoints)
    await seedCheckpoint(pool, runId, {
      version,
      name: `v${version}`,
      path: `tinker://${runId}/weights/v${version}-${from}`,
      bytes: 1,
    });
  await pool.query(
    "update runs set step = $2::int, serving_version = $2::int, sampled_tokens = sampled_tokens + 10 * ($2::int - $3::int + 1), status = 'stopped', ended_at = now() where id = $1",
    [runId, to, from],
  );
}

const steps = async (runId: string): Promise<number[]> => {
  const { rows } = await database.pool.query<{ step: number }>(
    "select step from steps where run_id = $1 and purpose = 'train' order by step",
    [runId],
  );
  return rows.map(({ step }) => step);
};
const curve = async (runId: string): Promise<[number, number][]> => {
  const { rows } = await database.pool.query<{ step: number; value: number }>(
    "select step, value from metric_points where run_id = $1 and name = 'reward/mean' order by step",
    [runId],
  );
  return rows.map(({ step, value }) => [step, value]);
};
const upTo = (last: number, from = 1) => Array.from({ length: last - from + 1 }, (_, at) => from + at);

describe("a run that is set back to a checkpoint", () => {
  test("goes on from that version; what came after it is a run of its own, with everything", async () => {
    const { pool } = database;
    const runId = await trained(14, [3, 9, 14]);
    const { supersededRunId } = await restoreRun(pool, runId, 9, "the owner");
    const branch = supersededRunId ?? "";
    expect(await readRun(pool, runId)).toMatchObject({
      status: "queued",
      step: 9,
      servingVersion: 9,
      endedAt: null,
      sampledTokens: "140",
    });
    expect(await steps(runId)).toEqual(upTo(9));
    expect(await curve(runId)).toEqual(upTo(9).map((step) => [step, step]));
    expect(await newestCheckpoint(pool, runId)).toMatchObject({ version: 9 });
    const older = await readRun(pool, branch);
    expect(older).toMatchObject({ status: "stopped", step: 14, sampledTokens: "50", counts: { settled: 5 } });
    expect(older.reason).toBe("steps 10 to 14 of untitled, before it was set back to version 9");
    expect(await steps(branch)).toEqual(upTo(14, 10));
    expect(await curve(branch)).toEqual(upTo(14, 10).map((step) => [step, step]));
    expect(await newestCheckpoint(pool, branch)).toMatchObject({ version: 14 });
    const { rows } = await pool.query(
      `select (select count(*)::int from stage_spans where run_id = $1) as spans, (select count(*)::int from groups where run_id = $1) as groups,
         (select count(*)::int from policy_versions where run_id = $1) as versions`,
      [branch],
    );
    expect(rows).toEqual([{ spans: 5, groups: 5, versions: 5 }]);
    expect(await readLineage(pool, runId)).toMatchObject({
      parent: null,
      children: [{ runId: branch, relation: "superseded", version: 9, status: "stopped" }],
    });
    expect(await readLineage(pool, branch)).toMatchObject({
      parent: { runId, relation: "superseded", version: 9 },
      children: [],
    });
  });

  test("says so in its log, which goes on without a gap", async () => {
    const runId = await trained(3, [2]);
    const before = (await readEvents(database.pool, runId, 0, 100))?.events.length ?? 0;
    const { supersededRunId } = await restoreRun(database.pool, runId, 2, "the owner");
    const page = await readEvents(database.pool, runId, 0, 100);
    expect(page?.events.map(({ seq }) => seq)).toEqual(upTo(before + 2));
    expect(page?.events.slice(-2).map(({ body }) => body)).toEqual([
      { type: "run-restored", version: 2, supersededRunId, lastStep: 3, by: "the owner" },
      { type: "run-status", from: "stopped", to: "queued", reason: null },
    ]);
    expect((await readEvents(database.pool, supersededRunId ?? "", 0, 100))?.events).toMatchObject([
      { seq: 1, body: { type: "run-created" } },
    ]);
  });

  // 1…140, resumed at 90 and on to 170, resumed at 90 again and on to 110.
  test("fault 54: any number of times: the curve has one value a step and its steps neither repeat nor skip one", async () => {
    const { pool } = database;
    const runId = await trained(140, [90, 140]);
    const first = await restoreRun(pool, runId, 90, "me");
    await train(runId, 91, 170, [100, 170]);
    const second = await restoreRun(pool, runId, 90, "me");
    await train(runId, 91, 110, [110]);
    expect(await steps(runId)).toEqual(upTo(110));
    expect((await curve(runId)).map(([step]) => step)).toEqual(upTo(110));
    expect(await steps(first.supersededRunId ?? "")).toEqual(upTo(140, 91));
    expect(await steps(second.supersededRunId ?? "")).toEqual(upTo(170, 91));
    // What all attempts sampled counts.
    expect((await readRun(pool, runId)).sampledTokens).toBe(String(10 * (140 + 80 + 20)));
    expect(
      (await readCheckpoints(pool, runId, (await readConfig(pool, runId)).checkpoints)).map(({ version }) => version),
    ).toEqual([110, 90]);
    expect((await readLineage(pool, runId)).children).toHaveLength(2);
  });

  test("its later checkpoints keep the runs that began with them, whatever the numbers mean afterwards", async () => {
    const { pool } = database;
    const runId = await trained(6, [2, 4, 6]);
    const config = await readConfig(pool, runId);
    const fork = async (version: number) => {
      const model = { ...config.model, startFrom: { run: runId, version } };
      const { runId: id } = await createRun(pool, { config: { ...config, model } });
      await seedCheckpoint(pool, id, { version: 0, name: "start", path: `tinker://${runId}/v${version}`, bytes: 1 });
      return id;
    };
    const [early, late] = [await fork(2), await fork(6)];
    const first = (await restoreRun(pool, runId, 4, "me")).supersededRunId ?? "";
    expect((await readLineage(pool, early)).parent).toMatchObject({ runId, version: 2 });
    expect((await readLineage(pool, late)).parent).toMatchObject({ runId: first, relation: "fork", version: 6 });
    await train(runId, 5, 7, [7]);
    // The branch of before came from version 4, which goes into the branch of now.
    const second = (await restoreRun(pool, runId, 2, "me")).supersededRunId ?? "";
    expect((await readLineage(pool, first)).parent).toMatchObject({
      runId: second,
      relation: "superseded",
      version: 4,
    });
    expect((await readLineage(pool, runId)).children.map((child) => child.runId).sort()).toEqual(
      [second, early].sort(),
    );
  });

  test("the time for which it was over counts neither as hours of its budget nor as hours on a GPU", async () => {
    const { pool } = database;
    const runId = await trained(2, [1]);
    await pool.query(
      "update runs set started_at = now() - interval '50 hours', ended_at = now() - interval '47 hours' where id = $1",
      [runId],
    );
    await restoreRun(pool, runId, 1, "me");
    const usage = await readRunUsage(pool, { runId, hosted: false });
    expect(usage?.gpuHours).toBeCloseTo(3, 2);
  });

  test("fault 54: at its newest version, when nothing came after it, no run is made", async () => {
    const runId = await trained(4, [4]);
    expect(await restoreRun(database.pool, runId, 4, "me")).toEqual({ supersededRunId: null });
    expect((await readLineage(database.pool, runId)).children).toEqual([]);
  });

  test("once, when two ask at once", async () => {
    const runId = await trained(4, [2]);
    const asked = await Promise.allSettled([1, 2].map(() => restoreRun(database.pool, runId, 2, "me")));
    expect(asked.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect((await readLineage(database.pool, runId)).children).toHaveLength(1);
  });
});

describe("refuses, and changes nothing", () => {
  const refused = async (runId: string, version: number) => {
    // How long it boots is the one thing that moves on.
    const read = async () => ({ ...(await readRun(database.pool, runId)), boot: null });
    const before = await read();
    const error = await restoreRun(database.pool, runId, version, "me").catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConflictError);
    expect(await read()).toEqual(before);
    return error instanceof Error ? error.message : "";
  };

  test.each(["queued", "preparing", "running", "pausing", "paused", "stopping"] as const)(
    "a run that is %s",
    async (status) => {
      const runId = await trained(2, [1]);
      await database.pool.query("update runs set status = $2 where id = $1", [runId, status]);
      expect(await refused(runId, 1)).toContain("stop it first");
    },
  );

  test("a version without a checkpoint, or with one that is out of use", async () => {
    const runId = await trained(3, [1, 2]);
    await database.pool.query("update checkpoints set state = 'pruned' where run_id = $1 and version = 1", [runId]);
    expect(await refused(runId, 3)).toContain("no checkpoint of version 3");
    expect(await refused(runId, 1)).toContain("no checkpoint of version 1");
  });

  test("a run whose model is still being put away", async () => {
    const { pool } = database;
    const runId = await trained(3, [1]);
    await pool.query(
      "insert into gpu_workers (name, state, boot_id) values ('gpu-worker', 'ready', 'alive') on conflict (name) do update set state = 'ready', boot_id = 'alive'",
    );
    await pool.query("update runs set model_boot_id = 'alive' where id = $1", [runId]);
    expect(await refused(runId, 1)).toContain("put away");
    await pool.query("update runs set model_boot_id = 'of an earlier start' where id = $1", [runId]);
    await restoreRun(pool, runId, 1, "me");
  });

  test("while another run is about to begin with a version that goes away", async () => {
    const { pool } = database;
    const runId = await trained(4, [2, 4]);
    const config = await readConfig(pool, runId);
    const model = { ...config.model, startFrom: { run: runId, version: 4 } };
    const fork = (await createRun(pool, { config: { ...config, model } })).runId;
    expect(await refused(runId, 2)).toContain(`Run ${fork} is to begin with a later version`);
    await pool.query("update runs set status = 'stopped', ended_at = now() where id = $1", [fork]);
    await restoreRun(pool, runId, 2, "me");
  });

  test("superseded steps: their earlier ones are another run's", async () => {
    const runId = await trained(4, [2, 4]);
    const { supersededRunId } = await restoreRun(database.pool, runId, 2, "me");
    expect(await refused(supersededRunId ?? "", 4)).toContain("start a new run");
  });

  test("an evaluation, and a run that an outside trainer drives", async () => {
    const evaluation = await seedRun(database.pool, { status: "stopped", config: { kind: "evaluate" } });
    const driven = await seedRun(database.pool, { status: "stopped", config: { stepSource: "driven" } });
    expect(await refused(evaluation, 0)).toContain("Only a training run");
    expect(await refused(driven, 0)).toContain("outside trainer");
  });

  test("a run that is not there", async () => {
    await expect(restoreRun(database.pool, "nosuchrun1", 1, "me")).rejects.toThrow(NotFoundError);
  });
});

test("a fork names its parent from its launch on, and the parent lists it", async () => {
  const { pool } = database;
  const parent = await trained(3, [2, 3]);
  const config = await readConfig(pool, parent);
  const fork = (version: number | null) =>
    createRun(pool, { config: { ...config, model: { ...config.model, startFrom: { run: parent, version } } } });
  const [named, newest] = [await fork(2), await fork(null)];
  const plain = await createRun(pool, { config });
  expect((await readLineage(pool, named.runId)).parent).toMatchObject({ runId: parent, relation: "fork", version: 2 });
  expect((await readLineage(pool, newest.runId)).parent).toMatchObject({
    runId: parent,
    relation: "fork",
    version: null,
  });
  expect((await readLineage(pool, plain.runId)).parent).toBeNull();
  expect((await readLineage(pool, parent)).children.map(({ runId }) => runId)).toEqual([newest.runId, named.runId]);
});
