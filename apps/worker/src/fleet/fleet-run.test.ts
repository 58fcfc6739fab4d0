/** Runs that have GPU workers of their own on the fleet: asked for, found, lost and found again, given back. */
import { afterEach, expect, test, vi } from "vitest";
import { type FleetRig, startFleetRig } from "../../testing/fleet-rig.ts";
import { smokeConfig } from "../../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: FleetRig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const onFleet = (fleet: object = {}, change: Parameters<typeof smokeConfig>[0] = {}) =>
  smokeConfig({ backend: { fleet: { device: "cpu", ...fleet } }, ...change });
const workerRow = "select state, host, reason, restarts, wanted from fleet_workers where run_id = $1";

test("a run trains on a worker of its own, with its own key, and gives it back", async () => {
  rig = await startFleetRig([{}]);
  const runId = await rig.launch(onFleet());
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(rig.started).toHaveLength(1);
  expect(rig.started[0]?.stats.requests.get("/api/v1/optim_step")).toBe(2);
  // The one beside `npm start` was not asked for anything but whether it is there.
  expect(rig.gpu.stats.samples).toBe(0);
  await rig.until(
    "it is given back",
    () =>
      rig?.value("select 1 from fleet_workers where run_id = $1 and state = 'stopped'", [runId]) ??
      Promise.resolve(null),
  );
  expect(await rig.value("select count(*)::int from gpu_leases")).toBe(0);
  expect(rig.hosts[0]?.running()).toEqual([]);
  const dropped = () =>
    rig?.value("select count(*) = 0 from gpu_workers where name like 'fleet:%'") ?? Promise.resolve(null);
  await rig.until("its row is dropped", dropped);
});

test("a worker that is killed is found again where it starts anew; no step is taken twice", async () => {
  rig = await startFleetRig([{}, {}], { delayMs: 20 });
  const runId = await rig.launch(onFleet({}, { budget: { steps: 3 }, checkpoints: { every: 1 } }));
  await rig.until(
    "a step is done",
    async () => Number(await rig?.value("select step from runs where id = $1", [runId])) >= 1,
  );
  const first = rig.hosts.flatMap((host) => host.running())[0];
  await first?.worker.kill();
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows } = await rig.database.pool.query(workerRow, [runId]);
  expect(rows[0]?.restarts).toBe(1);
  const { rows: done } = await rig.database.pool.query(
    `select (body ->> 'step')::int as step from events
     where run_id = $1 and type = 'step-status' and body ->> 'purpose' = 'train' and body ->> 'to' = 'done' order by seq`,
    [runId],
  );
  expect(done.map(({ step }) => step)).toEqual([1, 2, 3]);
  expect(await rig.value("select serving_version from runs where id = $1", [runId])).toBe(3);
});

test("a run that begins with another's weights has its worker where those are, and reads them there", async () => {
  rig = await startFleetRig([{}, { cpuPlaces: 3 }]);
  const parent = await rig.launch(onFleet({}, { checkpoints: { every: 1 } }));
  expect(await rig.untilStatus(parent, "completed", "failed")).toBe("completed");
  const home = await rig.value("select host from fleet_workers where run_id = $1", [parent]);
  const fork = await rig.launch(onFleet({}, { model: { startFrom: { run: parent, version: 1 } } }));
  const launchedFork = () => rig?.hosts.flatMap((host) => host.running()).find(({ spec }) => spec.runId === fork);
  await rig.until("it is launched", async () => launchedFork() ?? null);
  expect(launchedFork()?.spec.reads).toEqual([parent]);
  const { rows } = await rig.database.pool.query("select host, files_on, reads from fleet_workers where run_id = $1", [
    fork,
  ]);
  expect(rows).toEqual([{ host: home, files_on: home, reads: [parent] }]);
});

test("what the fleet can't give ends the run with the reason and the remedy, and leaves nothing", async () => {
  rig = await startFleetRig([{}]);
  const gpu = await rig.launch(onFleet({ device: "gpu" }));
  const large = await rig.launch(onFleet({ devices: 3 }));
  for (const runId of [gpu, large]) expect(await rig.untilStatus(runId, "completed", "failed")).toBe("failed");
  expect((await rig.status(gpu)).reason).toMatch(/^backend\.fleet: .*no-gpu-runtime.*NVIDIA Container Toolkit/);
  expect((await rig.status(large)).reason).toMatch(/^backend\.fleet: .*too-large.*fewer or smaller/);
  await rig.until(
    "nothing is wanted",
    () => rig?.value("select bool_and(not wanted) from fleet_workers") ?? Promise.resolve(null),
  );
  expect(await rig.value("select count(*)::int from gpu_leases")).toBe(0);
  expect(rig.started).toEqual([]);
});

test("while it waits in line its page says for what; with no host, what to do", async () => {
  rig = await startFleetRig([]);
  const runId = await rig.launch(onFleet());
  const said = `select 1 from runs where id = $1
    and boot ->> 'message' = 'the GPU worker needs 1 place without a GPU; the fleet has no host: register one: rolldeck fleet add-host'`;
  await rig.until("it says why", () => rig?.value(said, [runId]) ?? Promise.resolve(null));
  expect(await rig.value("select boot ->> 'phase' from runs where id = $1", [runId])).toBe("waiting-for-worker");
});
