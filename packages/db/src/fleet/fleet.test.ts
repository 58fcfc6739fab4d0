/** The fleet's rows on a real Postgres: a device has one holder, a claim fences what is older, and what happens is in the run's log. */
import { FleetDemand, FleetHostSpec, type FleetReason } from "@rolldeck/contracts/fleet";
import type { HostFacts } from "@rolldeck/contracts/ports/fleet";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedRun } from "../../testing/seed-run.ts";
import { addFleetHost, drainFleetHost, fleetHostAway, removeFleetHost } from "./fleet-hosts.ts";
import { withFleetLock } from "./fleet-lock.ts";
import { fleetStore } from "./fleet-store.ts";
import { unwantWorkers, wantWorkers } from "./want-workers.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => database.pool.query("truncate fleet_hosts, fleet_devices, fleet_workers, gpu_leases"));

const store = () => fleetStore(database.pool);
const reason: FleetReason = { code: "container-ended", message: "its container ended with 3", remedy: null };
const facts = (...uuids: readonly string[]): HostFacts => ({
  ...{ daemon: "28", system: "Debian", cpus: 8, memoryMb: 64_000, runtimes: ["nvidia", "runc"], cdiDevices: [] },
  ...{ gpuRuntime: "nvidia", probeTrouble: null },
  gpus: uuids.map((uuid, index) => ({ uuid, index, model: "NVIDIA H200", memoryMb: 143_771 })),
});
const host = (name: string, over: Partial<FleetHostSpec> = {}) =>
  FleetHostSpec.parse({ name, endpoint: { kind: "socket", path: `/run/${name}.sock` }, ...over });
async function addHost(name: string, ...uuids: readonly string[]): Promise<void> {
  await addFleetHost(database.pool, host(name));
  await store().hostFacts(name, facts(...uuids));
}
async function wantOne(over: Partial<FleetDemand> = {}): Promise<{ runId: string; workerId: string }> {
  const runId = await seedRun(database.pool);
  await wantWorkers(database.pool, runId, FleetDemand.parse(over));
  const { rows } = await database.pool.query("select id from fleet_workers where run_id = $1 order by role", [runId]);
  return { runId, workerId: rows[0].id };
}
const place = (workerId: string, hostName: string, ...devices: readonly string[]) =>
  store().apply({ type: "place", workerId, host: hostName, devices });
const stateOf = async (workerId: string) =>
  (await database.pool.query("select * from fleet_workers where id = $1", [workerId])).rows[0];
const leases = async () =>
  (await database.pool.query("select device_id, worker_id, claim from gpu_leases order by device_id")).rows;
const notes = async (runId: string): Promise<string[]> =>
  (
    await database.pool.query("select body ->> 'message' as m from events where run_id = $1 order by seq", [runId])
  ).rows.map((row) => row.m);

describe("leases", () => {
  test("of many placements on one GPU at the same moment one holds", async () => {
    await addHost("a", "GPU-1", "GPU-2");
    const workers = await Promise.all(Array.from({ length: 12 }, () => wantOne()));
    const claims = await Promise.all(workers.map(({ workerId }) => place(workerId, "a", "GPU-1")));
    expect(claims.filter((claim) => claim !== null)).toEqual([1]);
    expect(await leases()).toHaveLength(1);
    const losers = workers.filter((_, at) => claims[at] === null);
    for (const { workerId } of losers) expect(await stateOf(workerId)).toMatchObject({ state: "queued", claim: 0 });
  });

  test("a placement takes all of its devices or none", async () => {
    await addHost("a", "GPU-1", "GPU-2");
    const one = await wantOne();
    const two = await wantOne({ devices: 2 });
    expect(await place(one.workerId, "a", "GPU-2")).toBe(1);
    expect(await place(two.workerId, "a", "GPU-1", "GPU-2")).toBeNull();
    expect(await leases()).toHaveLength(1);
    // One GPU for a worker that asked for two, and one of another host.
    expect(await place(two.workerId, "a", "GPU-1")).toBeNull();
    expect(await place(two.workerId, "b", "GPU-1", "GPU-3")).toBeNull();
  });

  test("nothing is placed on a host that drains, is not seen, or has lost the GPU", async () => {
    await addHost("a", "GPU-1", "GPU-2");
    const { workerId } = await wantOne();
    await drainFleetHost(database.pool, "a", true);
    expect(await place(workerId, "a", "GPU-1")).toBeNull();
    await drainFleetHost(database.pool, "a", false);
    await store().hostFacts("a", facts("GPU-2"));
    expect(await place(workerId, "a", "GPU-1")).toBeNull();
    expect((await store().read()).snapshot.hosts[0]?.devices.map((device) => device.id)).toEqual(["GPU-2"]);
    expect(await place(workerId, "a", "GPU-2")).toBe(1);
  });

  test("a GPU that a second host reports stays with the first", async () => {
    await addHost("a", "GPU-1");
    await addHost("b", "GPU-1", "GPU-2");
    const { snapshot } = await store().read();
    expect(snapshot.hosts.map((one) => one.devices.map((device) => device.id))).toEqual([["GPU-1"], ["GPU-2"]]);
    const { rows } = await database.pool.query("select trouble ->> 'message' as m from fleet_hosts where name = 'b'");
    expect(rows[0].m).toContain("GPU-1");
  });
});

describe("a worker's life", () => {
  test("placed, started, ready, lost, queued again: each once, under its claim, and told in its run's log", async () => {
    await addHost("a", "GPU-1");
    const { runId, workerId } = await wantOne();
    const claim = (await place(workerId, "a", "GPU-1")) ?? -1;
    const placed = { id: workerId, claim };
    expect(await place(workerId, "a", "GPU-1")).toBeNull();
    const container = { containerId: "c1", url: "http://127.0.0.1:8600" };
    expect(await store().started({ ...placed, claim: claim - 1 }, container)).toBe(false);
    expect(await store().started(placed, container)).toBe(true);
    expect(await store().ready(placed, "boot-1")).toBe(true);
    expect(await store().ended(placed, reason, true)).toBe(true);
    expect(await store().ended(placed, reason, true)).toBe(false);
    expect(await stateOf(workerId)).toMatchObject({ state: "lost", failures: 1, url: null });
    expect(await leases()).toHaveLength(1);
    expect(await store().apply({ type: "restart", workerId, reason })).toBe(0);
    expect(await store().apply({ type: "restart", workerId, reason })).toBeNull();
    expect(await stateOf(workerId)).toMatchObject({ state: "queued", restarts: 1, host: "a", boot_id: null });
    expect((await stateOf(workerId)).not_before.getTime()).toBeGreaterThan(Date.now());
    expect(await leases()).toEqual([]);
    expect(await place(workerId, "a", "GPU-1")).toBe(claim + 1);
    // What the first placement still says is late.
    expect(await store().ready(placed, "boot-1")).toBe(false);
    expect(await store().renew([placed])).toEqual(new Set());
    expect(await store().renew([{ ...placed, claim: claim + 1 }])).toEqual(new Set([workerId]));
    expect(await notes(runId)).toEqual([
      "GPU worker starts on host a",
      "GPU worker on host a is ready",
      "GPU worker on host a is lost: its container ended with 3",
      "GPU worker is started again: its container ended with 3",
      "GPU worker starts on host a",
    ]);
  });

  test("one that is not wanted gives its devices back when its container is gone, not before", async () => {
    await addHost("a", "GPU-1");
    const { runId, workerId } = await wantOne();
    const claim = (await place(workerId, "a", "GPU-1")) ?? -1;
    await unwantWorkers(database.pool, runId);
    expect(await store().apply({ type: "stop", workerId, reason: { ...reason, code: "unwanted" } })).toBe(0);
    expect(await leases()).toHaveLength(1);
    expect(await store().gone({ id: workerId, claim })).toBe(true);
    expect(await stateOf(workerId)).toMatchObject({ state: "stopped" });
    expect(await leases()).toEqual([]);
    // Asked for again, it queues again.
    await wantWorkers(database.pool, runId, FleetDemand.parse({}));
    expect(await stateOf(workerId)).toMatchObject({ state: "queued", wanted: true, ended_at: null });
  });

  test("one that yields queues again", async () => {
    await addHost("a", "GPU-1");
    const { workerId } = await wantOne();
    const claim = (await place(workerId, "a", "GPU-1")) ?? -1;
    await store().apply({ type: "stop", workerId, reason: { ...reason, code: "yields" } });
    await store().gone({ id: workerId, claim });
    expect(await stateOf(workerId)).toMatchObject({ state: "queued" });
  });

  test("a refusal ends it, gives its leases back and says what helps", async () => {
    await addHost("a", "GPU-1");
    const { runId, workerId } = await wantOne();
    await place(workerId, "a", "GPU-1");
    const refusal: FleetReason = { code: "no-gpu-runtime", message: "needs a GPU; none on a", remedy: "install it" };
    const refuse = (claim?: number) =>
      store().apply({ type: "refuse", workerId, reason: refusal, ...(claim === undefined ? {} : { claim }) });
    // Words about an earlier placement, or about a place in the line that it has left.
    expect([await refuse(0), await refuse()]).toEqual([null, null]);
    expect(await stateOf(workerId)).toMatchObject({ state: "starting" });
    expect(await leases()).toHaveLength(1);
    expect(await refuse(1)).toBe(0);
    expect(await stateOf(workerId)).toMatchObject({ state: "refused", reason: refusal });
    expect(await leases()).toEqual([]);
    expect((await notes(runId)).at(-1)).toBe("GPU worker needs a GPU; none on a");
  });

  test("a worker that is asked for again while it stops queues once it is gone", async () => {
    await addHost("a", "GPU-1");
    const { runId, workerId } = await wantOne();
    await place(workerId, "a", "GPU-1");
    await unwantWorkers(database.pool, runId);
    const unwanted: FleetReason = { code: "unwanted", message: "its run needs it no more", remedy: null };
    await store().apply({ type: "stop", workerId, reason: unwanted });
    await wantWorkers(database.pool, runId, FleetDemand.parse({}));
    expect(await stateOf(workerId)).toMatchObject({ state: "stopping", wanted: true });
    await store().gone({ id: workerId, claim: 1 });
    expect(await stateOf(workerId)).toMatchObject({ state: "queued", ended_at: null });
    expect(await leases()).toEqual([]);
  });

  test("a run that is over wants nothing, whoever ended it", async () => {
    const { runId, workerId } = await wantOne({ layout: "split", replicas: 2 });
    const { rows } = await database.pool.query(
      "select role, replica from fleet_workers where run_id = $1 order by 1, 2",
      [runId],
    );
    expect(rows).toEqual([
      { role: "sampler", replica: 0 },
      { role: "sampler", replica: 1 },
      { role: "trainer", replica: 0 },
    ]);
    await database.pool.query("update runs set status = 'completed' where id = $1", [runId]);
    await store().read();
    expect(await stateOf(workerId)).toMatchObject({ wanted: false });
  });
});

describe("hosts", () => {
  test("one that is silent is lost after a while, and back with its first answer", async () => {
    await addHost("a", "GPU-1");
    const silent: FleetReason = { code: "unavailable", message: "no answer", remedy: null };
    await fleetHostAway(database.pool, "a", silent);
    expect((await store().read()).snapshot.hosts[0]?.state).toBe("ready");
    await database.pool.query("update fleet_hosts set last_seen_at = now() - interval '16 seconds'");
    await fleetHostAway(database.pool, "a", silent);
    expect((await store().read()).snapshot.hosts[0]?.state).toBe("lost");
    await store().hostFacts("a", facts("GPU-1"));
    expect((await store().read()).snapshot.hosts[0]?.state).toBe("ready");
  });

  test("one with workers is not removed; a name is taken once", async () => {
    await addHost("a", "GPU-1");
    await expect(addFleetHost(database.pool, host("a"))).rejects.toThrow("there is a host a already");
    const { workerId } = await wantOne();
    const claim = (await place(workerId, "a", "GPU-1")) ?? -1;
    await expect(removeFleetHost(database.pool, "a")).rejects.toThrow("drain it");
    await store().apply({ type: "stop", workerId, reason: { ...reason, code: "unwanted" } });
    await store().gone({ id: workerId, claim });
    await removeFleetHost(database.pool, "a");
    await expect(removeFleetHost(database.pool, "a")).rejects.toThrow("no host with id a");
  });

  test("places on processors are what the operator said, and no other host's", async () => {
    for (const name of ["a", "b"]) {
      await addFleetHost(database.pool, host(name, { cpuPlaces: 2, cpuMemoryMb: 512 }));
      await store().hostFacts(name, { ...facts(), gpuRuntime: null });
    }
    const { snapshot } = await store().read();
    expect(snapshot.hosts.map((one) => [one.gpuRuntime, one.devices])).toEqual(
      ["a", "b"].map((name) => [
        false,
        [1, 2].map((place) => ({ id: `cpu-${name}-${place}`, kind: "cpu", memoryMb: 512 })),
      ]),
    );
  });

  test("an address that is not private is refused, and so is a name with anything but letters", () => {
    const issues = (over: object) =>
      FleetHostSpec.safeParse({ ...host("a"), ...over }).error?.issues.map((one) => one.path.join("."));
    expect(issues({ address: "8.8.8.8" })).toEqual(["address"]);
    expect(issues({ address: "fd00::1" })).toBeUndefined();
    expect(issues({ name: "../etc" })).toEqual(["name"]);
    expect(issues({ endpoint: { kind: "ssh", host: "-oProxyCommand=x" } })).toEqual(["endpoint.host"]);
    expect(issues({ endpoint: { kind: "tcp", host: "h" } })).toEqual(["endpoint.certFolder"]);
    const certFolder = "/etc/certs";
    for (const name of ["http:docker", "docker:2375", "a b", ""])
      expect(issues({ endpoint: { kind: "tcp", host: name, certFolder } })).toEqual(["endpoint.host"]);
    for (const name of ["docker.example.org", "10.0.0.7", "fd00::7"])
      expect(issues({ endpoint: { kind: "tcp", host: name, certFolder } })).toBeUndefined();
    // ssh would take the first for two files, and put something else in the place of the others.
    for (const file of ["/etc/known hosts", "/etc/%h", "/etc/$HOME"])
      for (const field of ["keyFile", "knownHostsFile"])
        expect(issues({ endpoint: { kind: "ssh", host: "h", [field]: file } })).toEqual([`endpoint.${field}`]);
  });

  test("one process brings the fleet about at a time", async () => {
    let inside = false;
    await withFleetLock(database.pool, async () => {
      inside = true;
      expect(await withFleetLock(database.pool, async () => undefined)).toBe(false);
    });
    expect(inside).toBe(true);
  });
});
