/** The supervised fleet over hosts of this process and a real Postgres: what hosts, logs and copies of a database may do to it. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FleetDemand } from "@rolldeck/contracts/fleet";
import { addFleetHost } from "@rolldeck/db/fleet/fleet-hosts";
import { wantWorkers } from "@rolldeck/db/fleet/want-workers";
import { readFleetPage } from "@rolldeck/db/reads/read-fleet-page";
import { createTestDatabase, type TestDatabase } from "@rolldeck/db/testing/postgres";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { MemoryHost, type StartWorker } from "@rolldeck/fleet/testing/memory-hosts";
import { beforeEach, expect, test } from "vitest";
import { type SupervisedFleet, superviseFleet } from "./fleet.ts";

const secret = "a-secret-of-this-test-that-is-long-enough";
let database: TestDatabase;
let logs: string;
let hosts: MemoryHost[] = [];
let fleets: SupervisedFleet[] = [];
/** Ids of fleets that launchers were asked for. */
let ids: string[] = [];

/** Answers as a GPU worker does that has no model yet. */
const start: StartWorker = async ({ workerId, claim }) => {
  let exit: number | null = null;
  const server = createServer((_, response) => response.end(JSON.stringify({ boot_id: `${workerId} ${claim}` })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const end = async (): Promise<void> => {
    exit ??= 0;
    server.close();
    server.closeAllConnections();
  };
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { url: `http://127.0.0.1:${port}`, kill: end, stop: end, exitCode: () => exit };
};

beforeEach(async () => {
  database = await createTestDatabase();
  logs = mkdtempSync(join(tmpdir(), "rolldeck-fleet-logs-"));
  [hosts, fleets, ids] = [[], [], []];
  return async () => {
    for (const host of hosts) host.silence(null);
    await Promise.all(fleets.map((fleet) => fleet.close()));
    await Promise.all(hosts.map((host) => host.close()));
    await database.drop();
    rmSync(logs, { recursive: true, force: true });
  };
});

async function register(name: string, cpuPlaces: number, gpus: readonly string[] | null = null): Promise<MemoryHost> {
  const host = new MemoryHost(name, start);
  host.gpus = gpus;
  hosts.push(host);
  await addFleetHost(database.pool, host.spec({ cpuPlaces }));
  return host;
}
function supervise(ownSecret = secret): SupervisedFleet {
  const fleet = superviseFleet({
    ...{ pool: database.pool, deployment: "d", secret: ownSecret, logFolder: logs },
    launcherOf: ({ name }, { fleet }) => {
      ids.push(fleet);
      return hosts.find((host) => host.name === name) ?? new MemoryHost(name, start);
    },
  });
  fleets.push(fleet);
  return fleet;
}
async function launch(demand: object): Promise<string> {
  const runId = await seedRun(database.pool);
  await wantWorkers(database.pool, runId, FleetDemand.parse(demand));
  return runId;
}
const workerOf = async (runId: string) =>
  (await readFleetPage(database.pool)).workers.find((worker) => worker.runId === runId);
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 60_000; !(await holds()); ) {
    if (performance.now() > end) throw new Error(`${what}: ${JSON.stringify(await readFleetPage(database.pool))}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
const isReady = (runId: string) => async () => (await workerOf(runId))?.state === "ready";

test("a host whose daemon hangs keeps nobody waiting: runs start on the others meanwhile", async () => {
  const hanging = await register("a", 0);
  await register("b", 1);
  supervise();
  await until("both are there", async () =>
    (await readFleetPage(database.pool)).hosts.every((host) => host.state === "ready"),
  );
  hanging.silence("fails");
  await until("it is known to be silent", async () => (await readFleetPage(database.pool)).hosts[0]?.trouble !== null);
  // From here on it never answers: a round that waited for it would never end.
  hanging.silence("hangs");
  const runId = await launch({ device: "cpu" });
  await until("the run has its worker", isReady(runId));
  hanging.silence(null);
  await until("it is back", async () => (await readFleetPage(database.pool)).hosts[0]?.state === "ready");
});

test("a host that has lost its GPU runtime is taken as it is, and the worker starts on another one", async () => {
  const lost = await register("a", 0, ["GPU-a"]);
  await register("b", 0, ["GPU-b"]);
  supervise();
  await until("both GPUs are known", async () =>
    (await readFleetPage(database.pool)).hosts.every((host) => host.devices.length === 1),
  );
  lost.gpus = null;
  const runId = await launch({ device: "gpu" });
  await until("it runs on the other one", isReady(runId));
  expect((await workerOf(runId))?.host).toBe("b");
  const [first] = (await readFleetPage(database.pool)).hosts;
  expect(first).toMatchObject({ gpuRuntime: null, devices: [{ present: false, workerId: null }] });
});

test("a log whose stream breaks off, and one that another supervisor goes on with, has each line once", async () => {
  const host = await register("a", 1);
  const line = (second: number) => `2026-11-30T10:00:0${second}.000000000Z line ${second}`;
  host.logLines = [line(1), line(2)];
  const first = supervise();
  const runId = await launch({ device: "cpu" });
  await until("the run has its worker", isReady(runId));
  const said = async () => {
    const file = join(logs, `${(await workerOf(runId))?.workerId}.log`);
    return readFileSync(file, "utf8").trim().split("\n");
  };
  host.logLines = [line(1), line(2), line(3)];
  await until("the third line is there", async () => (await said()).length >= 3);
  await first.abandon();
  host.logLines = [line(1), line(2), line(3), line(4)];
  supervise();
  await until("the fourth line is there", async () => (await said()).length >= 4);
  expect(await said()).toEqual([1, 2, 3, 4].map(line));
});

test("a copy of the database with a data folder of its own has a fleet of its own", async () => {
  await register("a", 1);
  const own = supervise();
  await until("it looks", async () => ids.length > 0);
  await own.close();
  supervise("the-secret-of-another-data-folder-entirely");
  await until("the other looks", async () => new Set(ids).size > 1);
  expect(new Set(ids).size).toBe(2);
});

test("what a run left is removed when nobody can want it, with its logs; a version that was saved keeps all of it", async () => {
  const host = await register("a", 2);
  host.logLines = ["2026-11-30T10:00:01.000000000Z line"];
  supervise();
  const [bare, kept] = [await launch({ device: "cpu" }), await launch({ device: "cpu" })];
  await until("both run", async () => (await isReady(bare)()) && (await isReady(kept)()));
  await database.pool.query(
    `insert into checkpoints (run_id, version, name, path, state) values ($1, 1, 'c', 'tinker://m/weights/c', 'complete')`,
    [kept],
  );
  const logOf = async (runId: string) => join(logs, `${(await workerOf(runId))?.workerId}.log`);
  const files = [await logOf(bare), await logOf(kept)];
  await until("both have said something", async () => files.every((file) => existsSync(file)));
  await database.pool.query("update runs set status = 'stopped', ended_at = now()");
  await until("the one is forgotten", async () => host.forgotten.includes(bare));
  await until("its log is gone", async () => !existsSync(files[0] ?? ""));
  expect(host.forgotten).toEqual([bare]);
  expect(existsSync(files[1] ?? "")).toBe(true);
  const { rows } = await database.pool.query("select run_id from fleet_workers where files_removed");
  expect(rows).toEqual([{ run_id: bare }]);
});
