/** Readers of what runs on the fleet saved: asked for where the files are, kept while they are used, and never in the way of their run. */
import { ConflictError } from "@rolldeck/contracts/errors";
import { FleetDemand, FleetHostSpec } from "@rolldeck/contracts/fleet";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedCheckpoint } from "../../testing/seed-checkpoint.ts";
import { seedRun } from "../../testing/seed-run.ts";
import { startServing, stopServing } from "../servings.ts";
import { addFleetHost } from "./fleet-hosts.ts";
import { fleetStore } from "./fleet-store.ts";
import { readRunFiles, unwantReader, useReader, wantReader } from "./readers.ts";
import { readRunWorkers } from "./run-workers.ts";
import { unwantWorkers, wantWorkers } from "./want-workers.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => database.pool.query("truncate fleet_hosts, fleet_devices, fleet_workers, gpu_leases"));

const store = () => fleetStore(database.pool);
const sql = (text: string, values: readonly unknown[] = []) => database.pool.query(text, [...values]);

/** A run that is over, whose worker was on host a. */
async function overRun(): Promise<string> {
  const { pool } = database;
  const runId = await seedRun(pool, { status: "completed", config: { backend: { fleet: { devices: 2 } } } });
  await addFleetHost(pool, FleetHostSpec.parse({ name: "a", endpoint: { kind: "socket", path: "/a.sock" } }));
  await wantWorkers(pool, runId, FleetDemand.parse({ devices: 2, memoryMb: 24_000 }));
  await sql("update fleet_workers set state = 'stopped', wanted = false, host = 'a', ended_at = now()");
  await seedCheckpoint(pool, runId, { version: 1, name: "v1", path: "tinker://m/weights/v1", bytes: 9 });
  return runId;
}
const readerOf = async (runId: string) =>
  (await sql("select * from fleet_workers where run_id = $1 and role = 'reader'", [runId])).rows[0];
const ready = (runId: string) =>
  sql("update fleet_workers set state = 'ready', host = 'a', ready_at = now() where run_id = $1 and role = 'reader'", [
    runId,
  ]);
const unusedFor = (minutes: number) =>
  sql(
    `update fleet_workers set used_at = now() - $1::int * interval '1 minute', ready_at = now() - $1::int * interval '1 minute'
     where role = 'reader'`,
    [minutes],
  );

test("a reader is asked for where the files are, with one device of their kind; the log says by whom, once", async () => {
  const runId = await overRun();
  await wantReader(database.pool, runId, "the owner");
  await wantReader(database.pool, runId, "the owner");
  expect(await readerOf(runId)).toMatchObject({
    state: "queued",
    wanted: true,
    files_on: "a",
    devices: 1,
    memory_mb: 24_000,
  });
  const { snapshot } = await store().read();
  expect(snapshot.workers).toMatchObject([{ role: "reader", filesOn: "a", devices: 1 }]);
  // The run itself has nothing to do with it.
  expect((await readRunWorkers(database.pool, runId)).map(({ role }) => role)).toEqual(["colocated"]);
  const { rows } = await sql("select body ->> 'message' as said from events where run_id = $1", [runId]);
  expect(rows).toEqual([{ said: "GPU worker (reader) was asked for by the owner" }]);
});

test("it is given back when nobody has used it for a while, or nobody asks for one that waits", async () => {
  const runId = await overRun();
  await wantReader(database.pool, runId, "the owner");
  await unusedFor(59);
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: true });
  await unusedFor(61);
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: false });
  await wantReader(database.pool, runId, "the owner");
  await ready(runId);
  await unusedFor(11);
  await useReader(database.pool, runId);
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: true });
  await unusedFor(11);
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: false });
});

test("its own workers go first: none is asked for beside them, and one that is there makes room unless it is used", async () => {
  const runId = await overRun();
  await wantReader(database.pool, runId, "the owner");
  await ready(runId);
  await sql("update runs set status = 'running' where id = $1", [runId]);
  await wantWorkers(database.pool, runId, FleetDemand.parse({ devices: 2 }));
  await expect(wantReader(database.pool, runId, "the owner")).rejects.toThrow(ConflictError);
  await unusedFor(2);
  await useReader(database.pool, runId);
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: true });
  await unusedFor(2);
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: false });
  // Nor does what ends the run's own end its reader.
  await unwantWorkers(database.pool, runId);
  await wantReader(database.pool, runId, "the owner");
  await unwantWorkers(database.pool, runId);
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: true });
  await unwantReader(database.pool, runId);
  expect(await readerOf(runId)).toMatchObject({ wanted: false });
});

test("what is served has a reader when the run's workers are gone, and keeps it until it is stopped", async () => {
  const runId = await overRun();
  const serving = await startServing(database.pool, { runId, version: 1 }, "the owner");
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: true, state: "queued" });
  await ready(runId);
  await unusedFor(600);
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: true });
  await stopServing(database.pool, serving?.servingId ?? "", "the owner");
  await store().read();
  expect(await readerOf(runId)).toMatchObject({ wanted: false });
});

test("of a branch that was set aside, the files are those of the run that it came from", async () => {
  const runId = await overRun();
  const branch = await seedRun(database.pool, { status: "stopped", config: { backend: { fleet: {} } } });
  await sql("update runs set parent_run_id = $2, parent_version = 1, parent_relation = 'superseded' where id = $1", [
    ...[branch, runId],
  ]);
  const files = await readRunFiles(database.pool, branch);
  expect(files).toMatchObject({ ownerId: runId, host: "a", hostIsRegistered: true });
  await sql("delete from fleet_hosts");
  expect(await readRunFiles(database.pool, runId)).toMatchObject({ hostIsRegistered: false });
  expect(await readRunFiles(database.pool, "nosuchrun1")).toBeNull();
});

test("a run whose workers were never anywhere has no files to read", async () => {
  const runId = await seedRun(database.pool, { status: "failed", config: { backend: { fleet: {} } } });
  await wantWorkers(database.pool, runId, FleetDemand.parse({}));
  await unwantWorkers(database.pool, runId);
  await expect(wantReader(database.pool, runId, "the owner")).rejects.toThrow("ever had a place");
});
