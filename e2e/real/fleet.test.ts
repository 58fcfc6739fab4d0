/**
 * Runs on the fleet, over the real API, worker and GPU workers: two hosts whose workers are processes of this test, and the supervisor's
 * own loop. Workers and the supervisor are killed in the midst of a run; no step is taken twice, and nothing is left.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { addFleetHost, drainFleetHost } from "@rolldeck/db/fleet/fleet-hosts";
import { roleFlags } from "@rolldeck/fleet/role-flags";
import { MemoryHost, type StartWorker } from "@rolldeck/fleet/testing/memory-hosts";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type SupervisedFleet, superviseFleet } from "../../apps/cli/src/start/fleet.ts";
import { checkLog } from "../chaos/check-log.ts";
import { startGpuWorker } from "../stack/started-gpu-worker.ts";
import { type RealStack, startRealStack } from "./real-stack.ts";
import { tinyConfig } from "./tiny-run.ts";

// Up to six model servers start one after the other, and each loads torch.
vi.setConfig({ testTimeout: 540_000 });

let stack: RealStack;
let folder: string;
let hosts: MemoryHost[] = [];
let fleet: SupervisedFleet | null = null;

/** One folder per run and host, as a volume is. */
const start: StartWorker = async ({ key, runId, role }, host) => {
  const dataFolder = path.join(folder, host.name, runId);
  mkdirSync(dataFolder, { recursive: true });
  return startGpuWorker({ apiKey: key, dataFolder, atOnce: true, flags: roleFlags(role) });
};

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-fleet-"));
  stack = await startRealStack({ only: "api,worker" });
  hosts = ["host-a", "host-b", "host-c"].map((name) => new MemoryHost(name, start));
  const [small, large] = hosts;
  if (small && large) {
    await addFleetHost(stack.pool, small.spec({ cpuPlaces: 1 }));
    await addFleetHost(stack.pool, large.spec({ cpuPlaces: 3 }));
  }
  supervise();
});
afterAll(async () => {
  await fleet?.close();
  await Promise.all(hosts.map((host) => host.close()));
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function supervise(): void {
  fleet = superviseFleet({
    pool: stack.pool,
    deployment: "test",
    secret: readFileSync(path.join(stack.dataFolder, "secrets/fleet-secret"), "utf8").trim(),
    logFolder: path.join(folder, "logs"),
    launcherOf: ({ name }) => hosts.find((host) => host.name === name) ?? new MemoryHost(name, start),
  });
}

const running = () => hosts.flatMap((host) => host.running());

test("a split run goes on when a sampler, and then its trainer, is killed: no step twice, no turn from other weights", async () => {
  const fleetOf = { device: "cpu", layout: "split", replicas: 2 } as const;
  const { runId } = await stack.rolldeck.launchRun({ ...tinyConfig(6), backend: { fleet: fleetOf } });
  const step = async () => Number(await stack.value("select step from runs where id = $1", [runId]));
  const ofRole = (role: string) => running().find(({ spec }) => spec.runId === runId && spec.role === role);
  await stack.until("two steps are done", async () => (await step()) >= 2, 240_000);
  // All of a run's workers are where they share its files.
  expect(new Set(running().map(({ containerId }) => containerId.slice(0, 6)))).toEqual(new Set(["host-b"]));
  await ofRole("sampler")?.worker.kill();
  await stack.until("it trains on", async () => (await step()) >= 3, 240_000);
  await ofRole("trainer")?.worker.kill();
  expect(await stack.ended(runId, 300_000)).toBe("completed");
  expect(await checkLog(stack.pool, runId)).toEqual([]);
  const { rows } = await stack.pool.query(
    "select role, sum(restarts)::int as n from fleet_workers where run_id = $1 group by 1 order by 1",
    [runId],
  );
  expect(rows).toEqual([
    { role: "sampler", n: 1 },
    { role: "trainer", n: 1 },
  ]);
  expect(await stack.value("select count(*)::int from policy_versions where run_id = $1", [runId])).toBe(7);
  // Sampler's logprobs are those of the weights that the turn names: the trainer finds the same.
  const gap = "select max(value) from metric_points where run_id = $1 and name = 'policy/logprob-gap'";
  expect(Number(await stack.value(gap, [runId]))).toBeLessThan(1e-3);
  const stored = "select count(*)::int from policy_versions where run_id = $1 and sampling_session_id is not null";
  expect(await stack.value(stored, [runId])).toBeLessThanOrEqual(4);
  await stack.until("all is given back", async () => stack.value("select count(*) = 0 from gpu_leases"));
  await readsWhatWasSaved(runId);
});

/** Its workers are gone: a reader gives the checkpoint, answers for it while it is served, and goes back. */
async function readsWhatWasSaved(runId: string): Promise<void> {
  const [newest] = (await stack.rolldeck.readCheckpoints(runId)).checkpoints;
  const id = newest?.id ?? "";
  await expect(stack.rolldeck.exportCheckpoint(id)).rejects.toThrow(/rolldeck checkpoint wake/);
  await stack.rolldeck.wakeFleetReader(runId);
  const reading = async () => (await stack.rolldeck.readCheckpoints(runId)).fleet;
  await stack.until("the reader answers", async () => (await reading())?.state === "ready", 120_000);
  expect(running().map(({ containerId, spec }) => [containerId.slice(0, 6), spec.role])).toEqual([
    ["host-b", "reader"],
  ]);
  const { length, bytes } = await stack.rolldeck.exportCheckpoint(id);
  const parts: Uint8Array[] = [];
  for await (const part of bytes) parts.push(part);
  const tar = Buffer.concat(parts);
  expect(tar.length).toBe(length);
  for (const name of ["README.md", "config.json", "model.safetensors"]) expect(tar.includes(name)).toBe(true);
  const { servingId, path: at, key } = await stack.rolldeck.serveCheckpoint(id);
  const answer = await fetch(`${stack.url}${at}/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ prompt: "a", max_tokens: 2 }),
  });
  expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ object: "text_completion" })]);
  await expect(stack.rolldeck.releaseFleetReader(runId)).rejects.toThrow("is served through it");
  await stack.rolldeck.stopServing(servingId);
  await stack.rolldeck.releaseFleetReader(runId);
  await stack.until("the reader is given back", async () => stack.value("select count(*) = 0 from gpu_leases"));
}

test("two of three runs train at once; one loses its worker, then the supervisor is killed; all complete", async () => {
  await drainFleetHost(stack.pool, "host-b", true);
  await addFleetHost(stack.pool, new MemoryHost("host-c", start).spec({ cpuPlaces: 1 }));
  const launch = async () => {
    const config = { ...tinyConfig(3), backend: { fleet: { device: "cpu" } } } as const;
    return (await stack.rolldeck.launchRun(config)).runId;
  };
  const runs = [await launch(), await launch(), await launch()] as const;
  const waits = async (runId: string): Promise<boolean> => {
    const { boot } = await stack.rolldeck.getRun(runId);
    return boot?.phase === "waiting-for-worker" && boot.message.includes("all that would do are taken");
  };
  await stack.until("one waits, and its page says for what", async () =>
    (await Promise.all(runs.map(waits))).some(Boolean),
  );
  const trains = await stack.until(
    "one has trained",
    async () => stack.value("select id from runs where step >= 1 and id = any($1) limit 1", [runs]),
    120_000,
  );
  const victim = running().find(({ spec }) => spec.runId === trains);
  expect(victim).toBeDefined();
  await victim?.worker.kill();
  await fleet?.abandon();
  supervise();
  for (const runId of runs) {
    expect(await stack.ended(runId, 300_000)).toBe("completed");
    expect(await checkLog(stack.pool, runId)).toEqual([]);
    expect(await stack.value("select count(*)::int from policy_versions where run_id = $1", [runId])).toBe(4);
  }
  const restarts = () => stack.value("select restarts from fleet_workers where run_id = $1", [trains]);
  expect(await restarts()).toBe(1);
  await stack.until("all is given back", async () => stack.value("select count(*) = 0 from gpu_leases"));
  expect(running()).toEqual([]);
});
