import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import {
  beginTrainerJob,
  moveTrainerJob,
  noteTrainerJob,
  readLaunchedTrainer,
  trainerJobScenes,
} from "./trainer-jobs.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const backend = { name: "verl", server: "cluster" };
const driven = async (): Promise<string> =>
  (await startPlannedRun(database.pool, { config: { stepSource: "driven", backend } })).runId;
const jobOf = (runId: string, attempt = 1) => ({
  ...{ runId, attempt, trainer: "cluster", submissionId: `rolldeck-${runId}-${attempt}` },
});
const eventsOf = async (runId: string) => {
  const sql = "select body from events where run_id = $1 and type = 'trainer-job' order by seq";
  return (await database.pool.query(sql, [runId])).rows.map(({ body }) => body);
};

test("a job is begun once, moves along its edges only, each with its event, and is read newest first", async () => {
  const { pool } = database;
  const runId = await driven();
  const begun = await Promise.all([1, 2, 3].map(() => beginTrainerJob(pool, jobOf(runId))));
  expect(begun.filter(Boolean)).toHaveLength(1);
  expect(await moveTrainerJob(pool, { ...jobOf(runId), from: "submitting", to: "running" }, null)).toBe(true);
  // Somebody else moved it before.
  expect(await moveTrainerJob(pool, { ...jobOf(runId), from: "submitting", to: "failed" }, "late")).toBe(false);
  expect(await moveTrainerJob(pool, { ...jobOf(runId), from: "running", to: "pending" }, null)).toBe(false);
  await noteTrainerJob(pool, jobOf(runId), { logTail: "STEP 1" });
  await noteTrainerJob(pool, jobOf(runId), { message: "the cluster does not answer" });
  await pool.query("update runs set trainer_lease_until = now() where id = $1", [runId]);
  expect(await moveTrainerJob(pool, { ...jobOf(runId), from: "running", to: "failed" }, "exit status 3")).toBe(true);
  // Its lease is past with it: the run may go on without being paused for want of it.
  const lease = await pool.query("select trainer_lease_until as until from runs where id = $1", [runId]);
  expect(lease.rows).toEqual([{ until: null }]);
  await beginTrainerJob(pool, jobOf(runId, 2));
  const { attempts } = await readLaunchedTrainer(pool, runId);
  expect(attempts).toMatchObject([
    { attempt: 2, state: "submitting", startedAt: null, endedAt: null },
    { attempt: 1, state: "failed", message: "exit status 3", logTail: "STEP 1" },
  ]);
  expect(attempts[1]?.endedAt).not.toBeNull();
  const told = [
    ["submitting", 1],
    ["running", 1],
    ["failed", 1],
    ["submitting", 2],
  ] as const;
  expect(await eventsOf(runId)).toMatchObject(told.map(([state, attempt]) => ({ state, attempt, trainer: "cluster" })));
});

test("the runs to look after are live ones of such a backend, and ended ones whose job has not ended", async () => {
  const { pool } = database;
  const names = ["verl", "skyrl-train"];
  const seen = async (runId: string) => (await trainerJobScenes(pool, names)).find((scene) => scene.runId === runId);
  const runId = await driven();
  expect(await seen(runId)).toMatchObject({ job: null, config: { backend } });
  expect(await trainerJobScenes(pool, ["skyrl-train"])).toEqual([]);
  expect(await seen((await startPlannedRun(pool)).runId)).toBeUndefined();
  await beginTrainerJob(pool, jobOf(runId));
  await pool.query("update runs set status = 'stopped' where id = $1", [runId]);
  expect(await seen(runId)).toMatchObject({ status: "stopped", job: { attempt: 1, state: "submitting" } });
  await moveTrainerJob(pool, { ...jobOf(runId), from: "submitting", to: "stopped" }, null);
  expect(await seen(runId)).toBeUndefined();
  // An ended run launches nothing.
  expect(await beginTrainerJob(pool, jobOf(runId, 2))).toBe(false);
});
