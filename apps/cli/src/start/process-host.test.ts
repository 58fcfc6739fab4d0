/** A host of processes under the supervised fleet: real processes, rows in a real Postgres, and a supervisor that is gone. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { FleetDemand, FleetHostSpec } from "@rolldeck/contracts/fleet";
import { addFleetHost } from "@rolldeck/db/fleet/fleet-hosts";
import { wantWorkers } from "@rolldeck/db/fleet/want-workers";
import { readFleetPage } from "@rolldeck/db/reads/read-fleet-page";
import { createTestDatabase, type TestDatabase } from "@rolldeck/db/testing/postgres";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { workerScript } from "@rolldeck/fleet/testing/worker-image";
import { beforeEach, expect, test } from "vitest";
import { type SupervisedFleet, superviseFleet } from "./fleet.ts";

const secret = "a-secret-of-this-test-that-is-long-enough";
let database: TestDatabase;
let folder: string;
let fleet: SupervisedFleet | null = null;

beforeEach(async () => {
  database = await createTestDatabase();
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-process-host-"));
  writeFileSync(path.join(folder, "worker.mjs"), workerScript);
  return async () => {
    await fleet?.close();
    fleet = null;
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  };
});

function supervise(): SupervisedFleet {
  fleet = superviseFleet({
    ...{ pool: database.pool, deployment: "d", secret, logFolder: path.join(folder, "logs") },
    local: {
      python: async () => "python3",
      source: path.resolve(import.meta.dirname, "../../../../infra/gpu-worker"),
      ...{ folder: path.join(folder, "fleet"), modelRoots: "/models" },
      worker: `${process.execPath} ${path.join(folder, "worker.mjs")}`,
    },
  });
  return fleet;
}
const worker = async () => (await readFleetPage(database.pool)).workers[0];
const limit = { timeout: 60_000, interval: 100 };
const placements = (): string[] =>
  readdirSync(path.join(folder, "fleet")).flatMap((name) =>
    readdirSync(path.join(folder, "fleet", name, "placements")),
  );

test("a worker runs on when its supervisor is killed, is taken over by the next, and ends with one that is stopped", async () => {
  const host = { name: "here", endpoint: { kind: "process" }, cpuPlaces: 1 };
  await addFleetHost(database.pool, FleetHostSpec.parse(host));
  const runId = await seedRun(database.pool);
  await wantWorkers(database.pool, runId, FleetDemand.parse({ device: "cpu" }));
  const first = supervise();
  await expect.poll(async () => (await worker())?.state, limit).toBe("ready");
  const [page] = (await readFleetPage(database.pool)).hosts;
  expect(page).toMatchObject({ endpoint: "processes of this machine", state: "ready", daemon: "processes" });
  const { bootId } = (await worker()) ?? {};
  await first.abandon();

  const second = supervise();
  // Two rounds at least: the next supervisor has looked, and left it as it is.
  const seenAt = (await readFleetPage(database.pool)).hosts[0]?.lastSeenAt;
  await expect.poll(async () => (await readFleetPage(database.pool)).hosts[0]?.lastSeenAt, limit).not.toBe(seenAt);
  expect(await worker()).toMatchObject({ state: "ready", bootId, restarts: 0 });
  expect(placements()).toHaveLength(1);
  await second.close();
  fleet = null;
  expect(placements()).toEqual([]);
});

test("without what starts them there is no such host, and its row says so", async () => {
  await addFleetHost(database.pool, FleetHostSpec.parse({ name: "here", endpoint: { kind: "process" }, cpuPlaces: 1 }));
  fleet = superviseFleet({ pool: database.pool, deployment: "d", secret, logFolder: path.join(folder, "logs") });
  const trouble = async () => (await readFleetPage(database.pool)).hosts[0]?.trouble?.message;
  await expect.poll(trouble, limit).toContain("started by `npm start` alone");
});
