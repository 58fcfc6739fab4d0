/** The fleet over REST: hosts are the owner's to change, everybody's to see; logs are read by id, never by path. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fleet, FleetLog } from "@rolldeck/contracts/api/fleet";
import { Problem } from "@rolldeck/contracts/api/problems";
import { ConfigCheck } from "@rolldeck/contracts/api/runs";
import { FleetDemand } from "@rolldeck/contracts/fleet";
import { fleetStore } from "@rolldeck/db/fleet/fleet-store";
import { wantWorkers } from "@rolldeck/db/fleet/want-workers";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { jsonPost, startTestApi, type TestApi } from "../../testing/start-api.ts";

let api: TestApi;
let workerId: string;
beforeAll(async () => {
  api = await startTestApi();
  const { pool } = api.database;
  const runId = await seedRun(pool, { config: { name: "a run" } });
  await wantWorkers(pool, runId, FleetDemand.parse({ device: "cpu" }));
  workerId = (await pool.query("select id from fleet_workers")).rows[0].id;
});
afterAll(() => api.close());

const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  api.fetch(`/api/v1${path}`, jsonPost(body, headers));
const fleet = async (response: Response | Promise<Response>) => Fleet.parse(await (await response).json());
const host = { name: "rack1", endpoint: { kind: "tcp", host: "10.0.0.5", certFolder: "/etc/rolldeck/rack1" } };

describe("hosts", () => {
  it("are registered by the owner, shown without their keys, drained and forgotten", async () => {
    const made = await post("/fleet/hosts", { ...host, address: "10.0.0.5", cpuPlaces: 2 });
    expect(made.status).toBe(201);
    expect((await fleet(made)).hosts).toMatchObject([
      { name: "rack1", endpoint: "tcp://10.0.0.5:2376 (TLS)", state: "unseen", devices: [], trouble: null },
    ]);
    const again = Problem.parse(await (await post("/fleet/hosts", host)).json());
    expect(again.status).toBe(400);
    expect(again.detail).toContain("there is a host rack1 already");
    await fleetStore(api.database.pool).hostFacts("rack1", {
      ...{ daemon: "28", system: "Debian", cpus: 8, memoryMb: 64_000, runtimes: ["runc"], cdiDevices: [] },
      ...{ gpuRuntime: null, gpus: [], probeTrouble: null },
    });
    const drained = await fleet(post("/fleet/hosts/rack1/drain"));
    expect(drained.hosts[0]).toMatchObject({ state: "draining", gpuRuntime: null, cpus: 8 });
    expect(drained.hosts[0]?.devices.map((device) => device.deviceId)).toEqual(["cpu-rack1-1", "cpu-rack1-2"]);
    expect((await fleet(post("/fleet/hosts/rack1/drain", { draining: false }))).hosts[0]?.state).toBe("ready");
    expect((await fleet(api.fetch("/api/v1/fleet/hosts/rack1", { method: "DELETE" }))).hosts).toEqual([]);
    expect((await post("/fleet/hosts/rack1/drain")).status).toBe(404);
  });

  it("are nobody else's to change", async () => {
    const token = z
      .object({ secret: z.string() })
      .parse(await (await post("/tokens", { name: "w", scope: "write" })).json());
    const headers = { authorization: `Bearer ${token.secret}` };
    expect((await post("/fleet/hosts", host, headers)).status).toBe(403);
    expect((await api.fetch("/api/v1/fleet/hosts/rack1", { method: "DELETE", headers })).status).toBe(403);
    expect((await api.fetch("/api/v1/fleet", { headers })).status).toBe(200);
  });

  it.each([
    ["a public address", { ...host, address: "93.184.216.34" }, "address"],
    ["TCP without certificates", { ...host, endpoint: { kind: "tcp", host: "10.0.0.5" } }, "endpoint.certFolder"],
    ["a host that is an option", { ...host, endpoint: { kind: "ssh", host: "-oProxyCommand=id" } }, "endpoint.host"],
    ["a relative path", { ...host, modelFolder: "../models" }, "modelFolder"],
  ])("%s is refused by its field", async (_, body, path) => {
    const response = await post("/fleet/hosts", body);
    const problem = Problem.parse(await response.json());
    expect(problem.errors?.map((issue) => issue.path)).toContain(path);
  });
});

describe("workers", () => {
  it("are listed with their run and why they wait", async () => {
    const { workers } = await fleet(api.fetch("/api/v1/fleet"));
    expect(workers).toMatchObject([{ workerId, runName: "a run", role: "colocated", state: "queued", deviceIds: [] }]);
  });

  it("have a log that is read from its end, by id alone", async () => {
    const log = async (path: string) => FleetLog.parse(await (await api.fetch(`/api/v1/fleet/workers/${path}`)).json());
    expect(await log(`${workerId}/log`)).toEqual({ workerId, lines: [], more: false });
    const folder = join(api.dataFolder, "logs", "fleet");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${workerId}.log`), "one\ntwo\nthree\n");
    expect(await log(`${workerId}/log?lines=2`)).toEqual({ workerId, lines: ["two", "three"], more: true });
    writeFileSync(join(folder, `${workerId}.log`), `${"x".repeat(1_500_000)}\nlast\n`);
    expect(await log(`${workerId}/log`)).toEqual({ workerId, lines: ["last"], more: true });
    expect((await api.fetch("/api/v1/fleet/workers/..%2F..%2Fowner-token/log")).status).toBeGreaterThanOrEqual(400);
    expect((await api.fetch(`/api/v1/fleet/workers/${"0".repeat(26)}/log`)).status).toBe(404);
  });
});

describe("a launch", () => {
  it("that the fleet can't serve now is warned of, with what to do; one that is refused elsewhere is no launch", async () => {
    const check = async (backend: object) =>
      ConfigCheck.parse(
        await (await post("/runs/check", { config: { taskSets: [{ name: "key-chain" }], backend } })).json(),
      );
    const warned = await check({ fleet: { device: "cpu" } });
    expect(warned.ok).toBe(true);
    expect(warned.warnings).toContainEqual({
      path: "backend.fleet",
      message: expect.stringContaining("the fleet has no host (no-hosts)"),
      fix: "register one: rolldeck fleet add-host",
    });
    const both = await check({ fleet: { device: "cpu" }, server: "listed" });
    expect(both.issues.map(({ path }) => path)).toContain("backend.fleet");
  });
});
