/**
 * Checkpoints of runs on the fleet over REST, with the supervisor's own loop over a host in this process: exported through the run's own
 * worker while it lives, and through a reader that is asked for once it is gone.
 */
import { RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import { RunGpuWorkers } from "@rolldeck/contracts/api/fleet";
import { Problem } from "@rolldeck/contracts/api/problems";
import { ConfigCheck } from "@rolldeck/contracts/api/runs";
import { CreatedToken } from "@rolldeck/contracts/api/system";
import { FleetDemand } from "@rolldeck/contracts/fleet";
import { addFleetHost, removeFleetHost } from "@rolldeck/db/fleet/fleet-hosts";
import { fleetStore } from "@rolldeck/db/fleet/fleet-store";
import { unwantWorkers, wantWorkers } from "@rolldeck/db/fleet/want-workers";
import { seedCheckpoint } from "@rolldeck/db/testing/seed-checkpoint";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { FleetLoop } from "@rolldeck/fleet/reconcile/fleet-loop";
import { runKey } from "@rolldeck/fleet/run-key";
import { MemoryHost, type StartWorker } from "@rolldeck/fleet/testing/memory-hosts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { jsonPost, smallConfig, startTestApi, type TestApi } from "../../testing/start-api.ts";
import { type StoredFiles, startStoredFiles } from "../../testing/stored-files.ts";

const fleetSecret = "a-secret-of-this-test-that-is-long-enough";
let api: TestApi;
let host: MemoryHost;
let loop: FleetLoop;
let started: StoredFiles[] = [];
const signal = AbortSignal.timeout(600_000);

const start: StartWorker = async ({ key }) => {
  const files = await startStoredFiles(key);
  started.push(files);
  let exitCode: number | null = null;
  const end = async (): Promise<void> => {
    exitCode ??= 0;
    await files.close();
  };
  return { url: files.url, kill: end, stop: end, exitCode: () => exitCode };
};

beforeEach(async () => {
  started = [];
  api = await startTestApi({ fleetSecret });
  host = new MemoryHost("rack1", start);
  await addFleetHost(api.database.pool, host.spec());
  loop = new FleetLoop({
    store: fleetStore(api.database.pool),
    launcherOf: () => host,
    keyOf: (runId) => runKey(fleetSecret, runId),
    say: () => undefined,
  });
});
afterEach(async () => {
  await loop.idle();
  await host.close();
  await api.close();
});

async function rounds(count = 4): Promise<void> {
  for (let round = 0; round < count; round++) {
    await loop.round(signal);
    await loop.idle();
  }
}

/** A run with a checkpoint, whose worker serves. */
async function working(): Promise<string> {
  const { pool } = api.database;
  const runId = await seedRun(pool, { config: { backend: { fleet: { device: "cpu" } } } });
  await seedCheckpoint(pool, runId, { version: 2, name: "v2", path: `tinker://m/weights/${runId}-2`, bytes: 9 });
  await wantWorkers(pool, runId, FleetDemand.parse({ device: "cpu" }));
  await rounds();
  return runId;
}
async function over(): Promise<string> {
  const runId = await working();
  await api.database.pool.query("update runs set status = 'completed', ended_at = now() where id = $1", [runId]);
  await unwantWorkers(api.database.pool, runId);
  await rounds();
  expect(host.running()).toEqual([]);
  return runId;
}

const exported = (runId: string, init?: RequestInit) => api.fetch(`/api/v1/checkpoints/${runId}-v2/export`, init);
const problem = async (response: Response) => Problem.parse(await response.json());
const parsed = async (response: Promise<Response>) => RunCheckpoints.parse(await (await response).json());
const read = (runId: string) => parsed(api.fetch(`/api/v1/runs/${runId}/checkpoints`));
const wake = (runId: string, headers = {}) => api.fetch(`/api/v1/runs/${runId}/reader`, jsonPost({}, headers));
const release = (runId: string) => api.fetch(`/api/v1/runs/${runId}/reader`, { method: "DELETE" });

test("while the run's own worker serves its checkpoints are exported through it, with the run's key", async () => {
  const runId = await working();
  expect(await read(runId)).toMatchObject({
    exportRefusal: null,
    fleet: { state: "ready", worker: { role: "colocated", host: "rack1" }, canRelease: false },
  });
  const response = await exported(runId);
  expect(response.status).toBe(200);
  expect((await response.arrayBuffer()).byteLength).toBe(Number(response.headers.get("content-length")));
  expect(started[0]?.asked).toEqual([`/ext/v1/checkpoints/m/weights/${runId}-2/export?format=hf`]);
  const woken = await wake(runId);
  expect([woken.status, (await problem(woken)).detail]).toEqual([409, expect.stringContaining("own worker is wanted")]);
});

test("once it is gone an export says what is needed; the reader that is asked for gives it, and goes back", async () => {
  const runId = await over();
  const refused = await problem(await exported(runId));
  expect(refused).toMatchObject({ status: 409, type: "urn:rolldeck:problem:fleet-worker-needed" });
  expect(refused.detail).toContain(`rolldeck checkpoint wake ${runId}`);
  expect(await read(runId)).toMatchObject({ fleet: { state: "asleep", worker: null, wakeRefusal: null } });
  const asked = await parsed(wake(runId));
  expect(asked).toMatchObject({ fleet: { state: "coming", worker: { role: "reader", state: "queued" } } });
  expect(asked.exportRefusal).toContain("waits for its place");
  expect((await problem(await exported(runId))).detail).toContain("Ask again when it answers");
  await rounds();
  expect(host.running().map(({ spec }) => [spec.role, spec.runId])).toEqual([["reader", runId]]);
  expect(await read(runId)).toMatchObject({ exportRefusal: null, fleet: { state: "ready", canRelease: true } });
  const response = await exported(runId);
  expect(response.status).toBe(200);
  await response.arrayBuffer();
  expect(started[1]?.asked).toHaveLength(1);
  expect(await parsed(release(runId))).toMatchObject({ fleet: { canRelease: false } });
  await rounds();
  expect(host.running()).toEqual([]);
  expect((await api.database.pool.query("select count(*)::int as n from gpu_leases")).rows[0].n).toBe(0);
});

test("while its device is another's it waits with the fleet's own reason, and no device is leased twice", async () => {
  const runId = await over();
  const other = await working();
  await wake(runId);
  await rounds();
  const { fleet, exportRefusal } = await read(runId);
  expect(fleet).toMatchObject({ state: "coming", worker: { state: "queued" } });
  expect(exportRefusal).toContain("waits for 1 place without a GPU; all that would do are taken");
  expect(host.running().map(({ spec }) => spec.runId)).toEqual([other]);
});

test("a reader that is killed is started again where the files are, and found there", async () => {
  const runId = await over();
  await wake(runId);
  await rounds();
  await host.running()[0]?.worker.kill();
  await api.database.pool.query("update fleet_workers set not_before = null");
  await rounds(2);
  await api.database.pool.query("update fleet_workers set not_before = null");
  await rounds();
  await expect.poll(async () => (await exported(runId, { method: "HEAD" })).status).toBe(200);
  expect(started).toHaveLength(3);
});

test("none can be asked for of a run whose host is forgotten, that was never placed, or that has no workers of its own", async () => {
  const runId = await over();
  await removeFleetHost(api.database.pool, "rack1");
  const never = await seedRun(api.database.pool, { status: "failed", config: { backend: { fleet: {} } } });
  const plain = await seedRun(api.database.pool, { status: "completed" });
  for (const [id, words] of [
    [runId, "on host rack1, which is not registered any more"],
    [never, "has had a place on the fleet yet"],
    [plain, "This server knows no GPU worker"],
  ] as const) {
    const response = await wake(id);
    expect([response.status, (await problem(response)).detail]).toEqual([409, expect.stringContaining(words)]);
  }
  expect((await wake("nosuchrun1")).status).toBe(404);
});

test("a run's workers are listed with where they are, and those of other runs are not", async () => {
  const runId = await over();
  await wake(runId);
  await rounds();
  await working();
  const workersOf = async (id: string) => (await api.fetch(`/api/v1/runs/${id}/gpu-workers`)).json();
  expect(RunGpuWorkers.parse(await workersOf(runId)).workers).toMatchObject([
    { role: "colocated", state: "stopped", wanted: false, deviceIds: [] },
    { role: "reader", state: "ready", wanted: true, host: "rack1", deviceIds: ["cpu-rack1-1"] },
  ]);
  const plain = await seedRun(api.database.pool);
  expect(await workersOf(plain)).toEqual({ runId: plain, workers: [] });
  expect(await workersOf("nosuchrun1")).toMatchObject({ status: 404 });
});

test("asking for one takes a token that may write", async () => {
  const runId = await over();
  const made = await api.fetch("/api/v1/tokens", jsonPost({ name: "reader", scope: "read" }));
  const { secret } = CreatedToken.parse(await made.json());
  expect((await wake(runId, { authorization: `Bearer ${secret}` })).status).toBe(403);
});

test("a run of the fleet may begin with it where its files can be reached, and is told by the field where not", async () => {
  const runId = await over();
  const check = async (backend: object) => {
    const config = { ...smallConfig, model: { startFrom: { run: runId, version: 2 } }, backend };
    return ConfigCheck.parse(await (await api.fetch("/api/v1/runs/check", jsonPost({ config }))).json());
  };
  const fleet = { fleet: { device: "cpu" } };
  expect(await check(fleet)).toMatchObject({ ok: true, warnings: [] });
  expect((await check({})).issues).toEqual([
    {
      path: "model.startFrom.run",
      message: `the weights of run ${runId} lie on the fleet, this run's backend is gpu-worker`,
      fix: "use its backend",
    },
  ]);
  // Where the files can be looked at, they are.
  await wake(runId);
  await rounds();
  for (const files of started) files.state = "gone";
  expect((await check(fleet)).issues).toMatchObject([{ path: "model.startFrom.version" }]);
  await release(runId);
  await rounds();
  await api.database.pool.query("update fleet_hosts set draining = true");
  expect((await check(fleet)).warnings).toMatchObject([
    {
      path: "backend.fleet",
      message: expect.stringContaining("on host rack1, where the files are that it reads; that host drains"),
    },
  ]);
  await removeFleetHost(api.database.pool, "rack1");
  expect((await check(fleet)).issues).toMatchObject([
    {
      path: "model.startFrom.run",
      message: expect.stringContaining("host rack1"),
      fix: expect.stringContaining("add-host"),
    },
  ]);
});

test("what is served is answered by the reader, which is not given back before that is stopped", async () => {
  const runId = await over();
  const serve = () => api.fetch(`/api/v1/checkpoints/${runId}-v2/serve`, jsonPost({}));
  expect(await problem(await serve())).toMatchObject({ type: "urn:rolldeck:problem:fleet-worker-needed" });
  await wake(runId);
  await rounds();
  const serving = (await (await serve()).json()) as { servingId: string; path: string; key: string };
  const complete = () =>
    fetch(
      `${api.url}${serving.path}/completions`,
      jsonPost({ prompt: [1, 2] }, { authorization: `Bearer ${serving.key}` }),
    );
  expect((await complete()).status).toBe(200);
  expect(started[1]?.samples).toMatchObject([{ model_path: `tinker://m/weights/${runId}-2` }]);
  expect((await problem(await release(runId))).detail).toContain("Version 2 is served through it");
  // Its host is away: callers are told so in OpenAI's words.
  await host.running()[0]?.worker.kill();
  await rounds(1);
  const away = await complete();
  expect([away.status, await away.json()]).toEqual([
    503,
    { error: expect.objectContaining({ code: "fleet-worker-needed" }) },
  ]);
  await api.fetch(`/api/v1/servings/${serving.servingId}/stop`, jsonPost({}));
  expect((await release(runId)).status).toBe(200);
});
