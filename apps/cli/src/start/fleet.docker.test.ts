/**
 * The supervised fleet over two real Docker daemons and a real Postgres: placing, queueing, restarts, hosts and supervisors that
 * are killed, and that nothing is left over.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FleetDemand, FleetHostSpec } from "@rolldeck/contracts/fleet";
import { addFleetHost, removeFleetHost } from "@rolldeck/db/fleet/fleet-hosts";
import { wantWorkers } from "@rolldeck/db/fleet/want-workers";
import { readFleetPage } from "@rolldeck/db/reads/read-fleet-page";
import { createTestDatabase, type TestDatabase } from "@rolldeck/db/testing/postgres";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { fleetId } from "@rolldeck/fleet/fleet-id";
import { runKey } from "@rolldeck/fleet/run-key";
import { startTestHost, type TestHost, workerImage } from "@rolldeck/fleet/testing/docker-hosts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { type SupervisedFleet, superviseFleet } from "./fleet.ts";

const secret = "a-secret-of-this-test-that-is-long-enough";
let database: TestDatabase;
let logs: string;
const hosts: TestHost[] = [];
let fleet: SupervisedFleet | null = null;
let deployment = "";

beforeAll(async () => {
  for (const [place, how] of (["socket", "tcp"] as const).entries()) {
    const host = await startTestHost(place + 2, how);
    if ("missing" in host) throw new Error(host.missing);
    hosts.push(host);
  }
});
afterAll(async () => {
  await Promise.all(hosts.map((host) => host.stop()));
});
beforeEach(async () => {
  deployment = `t${Math.trunc(performance.now())}`;
  database = await createTestDatabase();
  logs = mkdtempSync(join(tmpdir(), "rolldeck-fleet-logs-"));
  return async () => {
    await fleet?.close();
    fleet = null;
    await database.drop();
    rmSync(logs, { recursive: true, force: true });
  };
});

const supervise = (): SupervisedFleet => {
  fleet = superviseFleet({ pool: database.pool, deployment, secret, logFolder: logs });
  return fleet;
};
const register = async (at: number, cpuPlaces: number): Promise<void> => {
  const endpoint = hosts[at]?.endpoint;
  const spec = { name: `host-${at}`, endpoint, cpuPlaces, cpuMemoryMb: 512, image: workerImage };
  await addFleetHost(database.pool, FleetHostSpec.parse(spec));
};
const launch = async (over: object = {}): Promise<string> => {
  const runId = await seedRun(database.pool);
  await wantWorkers(database.pool, runId, FleetDemand.parse({ device: "cpu", ...over }));
  return runId;
};
const finish = (runId: string) => database.pool.query("update runs set status = 'completed' where id = $1", [runId]);
const workers = async () => (await readFleetPage(database.pool)).workers;
const workerOf = async (runId: string) => {
  const found = (await workers()).find((one) => one.runId === runId);
  if (found === undefined) throw new Error("no worker");
  return found;
};
const host = (at: number): TestHost => {
  const found = hosts[at];
  if (found === undefined) throw new Error(`no host ${at}`);
  return found;
};
const containersOf = ({ docker }: TestHost) =>
  docker.listContainers({ all: true, filters: { label: [`rolldeck.fleet=${fleetId(deployment, secret)}`] } });
const containers = async () => (await Promise.all(hosts.map(containersOf))).flat();
const leases = async () => (await database.pool.query("select * from gpu_leases")).rows.length;
const infoOf = async (runId: string) => {
  const { rows } = await database.pool.query("select url from fleet_workers where run_id = $1", [runId]);
  const headers = { "X-API-Key": runKey(secret, runId) };
  const answer: unknown = await (await fetch(`${rows[0].url}/ext/v1/info`, { headers })).json();
  return z.object({ boots: z.int() }).parse(answer);
};
async function until(what: string, holds: () => Promise<boolean>, limitMs = 60_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > end)
      throw new Error(`${what}: not within ${limitMs} ms: ${JSON.stringify(await workers())}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
const states = async () => (await workers()).map((one) => one.state).sort();
const allReady = (runs: readonly string[]) => async () =>
  (await Promise.all(runs.map(workerOf))).every((worker) => worker.state === "ready");

describe.skipIf(!process.env.ROLLDECK_TEST_DOCKER)("the supervised fleet", () => {
  test("places what there is room for on both hosts, queues the rest with a reason, and gives its turn to who waits", async () => {
    await register(0, 1);
    await register(1, 1);
    const runs = [await launch(), await launch(), await launch()] as const;
    supervise();
    await until("two are ready", allReady([runs[0], runs[1]]));
    expect((await workerOf(runs[2])).reason).toMatchObject({ code: "no-room" });
    expect(new Set((await workers()).map((one) => one.host))).toEqual(new Set(["host-0", "host-1", null]));
    // Each run has a key of its own.
    const { rows } = await database.pool.query("select url from fleet_workers where run_id = $1", [runs[0]]);
    const wrong = await fetch(`${rows[0].url}/ext/v1/info`, { headers: { "X-API-Key": runKey(secret, runs[1]) } });
    expect(wrong.status).toBe(401);
    await finish(runs[0]);
    await until("the third is ready", allReady([runs[2]]));
    for (const run of runs) await finish(run);
    await until("all is over", async () => (await states()).every((state) => state === "stopped"));
    expect(await leases()).toBe(0);
    expect(await containers()).toEqual([]);
    await removeFleetHost(database.pool, "host-0");
  });

  test("a worker that is killed starts again on its host, with what it saved", async () => {
    await register(0, 1);
    await register(1, 1);
    const run = await launch();
    supervise();
    await until("it is ready", allReady([run]));
    const before = await workerOf(run);
    const [container] = await containers();
    await hosts[before.host === "host-0" ? 0 : 1]?.docker.getContainer(container?.Id ?? "").kill({ signal: "SIGKILL" });
    await until("it is ready again", async () => {
      const now = await workerOf(run);
      return now.state === "ready" && now.restarts === 1;
    });
    expect((await workerOf(run)).host).toBe(before.host);
    expect(await infoOf(run)).toMatchObject({ boots: 2 });
    expect(await containers()).toHaveLength(1);
    const notes = await database.pool.query(
      "select body ->> 'message' as m from events where run_id = $1 order by seq",
      [run],
    );
    expect(notes.rows.map((row) => row.m).join("\n")).toContain("is lost: its container ended with 137");
  });

  test("a supervisor that is gone leaves its workers running; the next one takes them over and removes what is nobody's", async () => {
    await register(0, 2);
    const run = await launch();
    const first = supervise();
    await until("it is ready", allReady([run]));
    const before = await workerOf(run);
    // As a kill: nothing is closed. Its connections go with it.
    const { Labels } = (await containers())[0] ?? {};
    await first.abandon();
    const stranger = { ...Labels, "rolldeck.fleet.claim": "99" };
    await host(0).docker.createContainer({ Image: workerImage, Labels: stranger });
    expect(await containers()).toHaveLength(2);
    supervise();
    await until("the orphan is gone", async () => (await containers()).length === 1);
    await until("it is ready", allReady([run]));
    const after = await workerOf(run);
    expect([after.bootId, after.restarts]).toEqual([before.bootId, 0]);
  });

  test("when a daemon is killed its workers start on the other host; when it is back nothing of them is left there", async () => {
    await register(0, 1);
    const run = await launch();
    supervise();
    await until("it is ready", allReady([run]));
    await register(1, 1);
    await until("the other host is there", async () =>
      (await readFleetPage(database.pool)).hosts.every((host) => host.state === "ready"),
    );
    host(0).daemon.freeze();
    await until("it is ready elsewhere", async () => {
      const now = await workerOf(run);
      return now.state === "ready" && now.host === "host-1";
    });
    expect(await leases()).toBe(1);
    host(0).daemon.thaw();
    await host(0).daemon.restart("SIGKILL");
    await until("the host is back, and empty", async () => {
      const [first] = (await readFleetPage(database.pool)).hosts;
      return first?.state === "ready" && (await containersOf(host(0))).length === 0;
    });
    expect((await workerOf(run)).host).toBe("host-1");
    expect((await workerOf(run)).restarts).toBe(1);
  });

  test("a GPU on these hosts ends as no-gpu-runtime, with host and remedy, no container and no lease left", async () => {
    await register(0, 1);
    await register(1, 1);
    const run = await launch({ device: "gpu" });
    supervise();
    await until("it is refused", async () => (await workerOf(run)).state === "refused");
    const { reason } = await workerOf(run);
    expect(reason?.code).toBe("no-gpu-runtime");
    expect(reason?.message).toContain("host-0, host-1");
    expect(reason?.remedy).toContain("NVIDIA Container Toolkit");
    expect(await leases()).toBe(0);
    expect(await containers()).toEqual([]);
  });

  test("a supervisor that is stopped ends its workers; the next one starts them again with what they saved", async () => {
    await register(0, 1);
    const run = await launch();
    const first = supervise();
    await until("it is ready", allReady([run]));
    await first.close();
    expect(await containers()).toEqual([]);
    supervise();
    await until("it is ready", allReady([run]));
    expect(await infoOf(run)).toMatchObject({ boots: 2 });
  });
});
