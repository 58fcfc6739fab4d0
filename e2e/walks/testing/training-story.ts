/**
 * What training leaves behind, as rows: a LoRA run with priced steps and kept checkpoints, a fork of it, what was set back, a served
 * checkpoint, and a fleet with hosts and workers in each state that people must tell apart.
 */
import type { FleetReason, FleetWorkerState } from "@rolldeck/contracts/fleet";
import { FleetHostSpec } from "@rolldeck/contracts/fleet";
import { Prices } from "@rolldeck/contracts/prices";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { addFleetHost, drainFleetHost, fleetHostAway, fleetHostFacts } from "@rolldeck/db/fleet/fleet-hosts";
import { newId } from "@rolldeck/db/new-id";
import { startServing } from "@rolldeck/db/servings";
import { seedEvents, seedMetric, seedRun } from "@rolldeck/db/testing/seed-run";
import type pg from "pg";

export const storyPrices = Prices.parse({ currency: "EUR", gpuHour: 2.5, sandboxHour: 0.04 });
const steps = 60;
const ramp = (from: number, to: number): number[] =>
  Array.from({ length: steps }, (_, at) => from + ((to - from) * at) / (steps - 1));

export interface TrainingStory {
  readonly runId: string;
  readonly forkId: string;
  /** Runs and has no checkpoint yet. */
  readonly freshId: string;
  /** Failed before its first checkpoint. */
  readonly lostId: string;
  /** Split over workers of the fleet, one of which waits. */
  readonly splitId: string;
  /** Was on the fleet and is over, its worker given back. */
  readonly givenBackId: string;
}

const loraConfig: Partial<RunConfigInput> = {
  name: "qwen3-0.6b lora, web search",
  tags: ["lora"],
  backend: { name: "gpu-worker", lora: { rank: 32 } },
  checkpoints: { every: 10, keep: 3, keepBest: { count: 2, metric: "reward/mean" } },
  budget: { steps, cost: 50 },
};

/** @param pool of a database without runs */
export async function seedTrainingStory(pool: pg.Pool): Promise<TrainingStory> {
  const ended = { status: "completed", endedAt: "2026-11-30T06:00:00Z", createdAt: "2026-11-30T01:00:00Z" } as const;
  const runId = await seedRun(pool, { config: loraConfig, ...ended });
  await seedEvents(pool, runId, 3);
  await pool.query("update runs set step = $2, started_at = created_at where id = $1", [runId, steps]);
  await seedMetric(pool, runId, "reward/mean", ramp(0.1, 0.8));
  for (const [name, to] of Object.entries({ total: 37.42, gpu: 36.1, sandbox: 1.32, judge: 0, hosted: 0 }))
    await seedMetric(pool, runId, `cost/${name}`, ramp(0, to));
  await seedMetric(pool, runId, "cost/per-trained-group", ramp(0.09, 0.041));
  await seedCheckpoints(pool, runId, [10, 30, 40, 50, 60]);
  await pool.query("update checkpoints set pinned = true where run_id = $1 and version = 10", [runId]);
  const startFrom = { model: { startFrom: { run: runId, version: 50 } } };
  const forkId = await seedRun(pool, { config: { ...loraConfig, name: "fork with a longer context", ...startFrom } });
  await seedParent(pool, forkId, { runId, version: 50, relation: "fork" });
  await seedCheckpoints(pool, forkId, [10]);
  const superseded = await seedRun(pool, {
    config: { ...loraConfig, name: `${loraConfig.name} (superseded)` },
    ...ended,
  });
  await seedParent(pool, superseded, { runId, version: 40, relation: "superseded" });
  const freshId = await seedRun(pool, { config: { ...loraConfig, name: "just begun" } });
  const lostId = await seedRun(pool, { config: { ...loraConfig, name: "failed early" }, ...ended, status: "failed" });
  await pool.query("update runs set step = 4 where id = $1", [lostId]);
  await startServing(pool, { runId, version: 50 }, "the owner");
  const onFleet = (name: string, fleet: object) => ({ ...loraConfig, name, backend: { lora: { rank: 32 }, fleet } });
  const split = { layout: "split", replicas: 2 };
  const splitId = await seedRun(pool, { config: onFleet("split over the fleet", split) });
  const givenBackId = await seedRun(pool, { config: onFleet("was on the fleet", {}), ...ended });
  await seedCheckpoints(pool, givenBackId, [60]);
  const story = { runId, forkId, freshId, lostId, splitId, givenBackId };
  await seedFleet(pool, story);
  return story;
}

async function seedCheckpoints(pool: pg.Pool, runId: string, versions: readonly number[]): Promise<void> {
  await pool.query(
    `insert into checkpoints (run_id, version, name, path, bytes, state, created_at)
     select $1, v, $1 || '-v' || v, $1 || '/v' || v, 92274688, 'complete', now() - (70 - v) * interval '5 minutes'
     from unnest($2::int[]) v`,
    [runId, versions],
  );
}

async function seedParent(
  pool: pg.Pool,
  runId: string,
  parent: { readonly runId: string; readonly version: number; readonly relation: "fork" | "superseded" },
): Promise<void> {
  await pool.query("update runs set parent_run_id = $2, parent_version = $3, parent_relation = $4 where id = $1", [
    ...[runId, parent.runId, parent.version, parent.relation],
  ]);
}

const facts = { daemon: "28.5.2", system: "Debian 13", runtimes: ["runc"], cdiDevices: [], probeTrouble: null };
const gpu = (index: number) => ({
  uuid: `GPU-5b2c1f0e-9a4d-4a53-8d1b-0c7be2f1a${String(index).padStart(3, "0")}`,
  index,
  model: "NVIDIA H100 80GB HBM3",
  memoryMb: 81_559,
});
const noRuntime: FleetReason = {
  code: "no-gpu-runtime",
  message: "the Docker daemon of rack2 can't give containers GPUs: it has the runtimes runc and no CDI device",
  remedy: "install the NVIDIA Container Toolkit there and run `nvidia-ctk runtime configure --runtime=docker`",
};
const noRoom: FleetReason = { code: "no-room", message: "all 4 devices that would do are taken", remedy: null };

async function seedFleet(pool: pg.Pool, runs: TrainingStory): Promise<void> {
  const tcp = { kind: "tcp", host: "10.0.0.5", certFolder: "/etc/rolldeck/rack1" } as const;
  const ssh = (host: string) => ({ kind: "ssh", host, user: "deck" }) as const;
  for (const spec of [
    { name: "rack1", endpoint: tcp, address: "10.0.0.5" },
    { name: "rack2", endpoint: ssh("10.0.0.6"), address: "10.0.0.6", cpuPlaces: 2 },
    { name: "rack3", endpoint: ssh("10.0.0.7"), address: "10.0.0.7" },
    { name: "here", endpoint: { kind: "socket", path: "/var/run/docker.sock" } },
  ])
    await addFleetHost(pool, FleetHostSpec.parse(spec));
  const big = { ...facts, cpus: 64, memoryMb: 515_000 };
  await fleetHostFacts(pool, "rack1", { ...big, gpuRuntime: "nvidia", gpus: [0, 1, 2, 3].map(gpu) });
  await fleetHostFacts(pool, "rack2", { ...big, gpuRuntime: null, gpus: [], probeTrouble: noRuntime.message });
  await fleetHostFacts(pool, "rack3", { ...big, gpuRuntime: null, gpus: [] });
  await drainFleetHost(pool, "rack2", true);
  await pool.query("update fleet_hosts set last_seen_at = now() - interval '3 hours' where name = 'rack3'");
  await fleetHostAway(pool, "rack3", {
    code: "host-lost",
    message: "ssh: connect to host 10.0.0.7: timed out",
    remedy: null,
  });
  const trainer = await seedWorker(pool, { runId: runs.forkId, state: "ready", role: "trainer", host: "rack1" });
  const sampler = await seedWorker(pool, { runId: runs.forkId, state: "starting", role: "sampler", host: "rack1" });
  for (const [at, worker] of [trainer, trainer, sampler, sampler].entries())
    await pool.query("insert into gpu_leases (device_id, worker_id, claim) values ($1, $2, 1)", [gpu(at).uuid, worker]);
  await seedWorker(pool, { runId: runs.freshId, state: "queued", reason: noRoom });
  await seedWorker(pool, { runId: runs.lostId, state: "refused", reason: noRuntime });
  await seedWorker(pool, { runId: runs.runId, state: "stopped", host: "rack1" });
  await seedWorker(pool, { runId: runs.givenBackId, state: "stopped", host: "rack1" });
  await seedWorker(pool, { runId: runs.splitId, state: "ready", role: "trainer", host: "rack1" });
  await seedWorker(pool, { runId: runs.splitId, state: "ready", role: "sampler", host: "rack1" });
  await seedWorker(pool, { runId: runs.splitId, state: "queued", role: "sampler", replica: 1, reason: noRoom });
}

async function seedWorker(
  pool: pg.Pool,
  worker: {
    readonly runId: string;
    readonly state: FleetWorkerState;
    readonly role?: "colocated" | "trainer" | "sampler";
    readonly replica?: number;
    readonly host?: string;
    readonly reason?: FleetReason;
  },
): Promise<string> {
  const id = newId();
  const over = worker.state === "stopped" || worker.state === "refused";
  await pool.query(
    `insert into fleet_workers (id, run_id, role, replica, device, devices, memory_mb, state, host, reason, wanted, placed_at, ended_at)
     values ($1, $2, $3, $8, 'gpu', 2, 0, $4, $5, $6, $4 <> 'stopped', case when $5::text is not null then now() end, case when $7 then now() end)`,
    [
      ...[id, worker.runId, worker.role ?? "colocated", worker.state, worker.host ?? null, worker.reason ?? null, over],
      worker.replica ?? 0,
    ],
  );
  return id;
}
