/**
 * The dispatchers on the live engine: real worker, queue and database, sandboxes that only take time, the paper's workload at 1:100 time
 * and the anchor's in real time. → {"boundedS","pipelineS","speedup","speedupIdeal","prioritySpeedup","engineOverheadPct",
 * "simErrorPct","slotBusyPct","anchor":{…}}
 *
 * Each seed plays `priority` for two steps (the second knows the first's durations), then `pipeline` for two and `bounded` for one, every
 * step over all 64 × 8 rollouts. Medians over seeds. Makespans count from a step's first waiting rollout to its last reward.
 * `speedup` = bounded ÷ pipeline; `prioritySpeedup` = pipeline ÷ priority of the second step; `speedupIdeal` from simulations without
 * overhead; `engineOverheadPct` = pipeline live ÷ that simulation − 1; `simErrorPct` = simulation with the overheads measured on a
 * `bounded` run of seed 6 ÷ pipeline live − 1; `slotBusyPct` of pipeline's first step.
 * Flags: --seeds 1,2,3,4,5, --only paper|anchor, --queue postgres|redis (postgres)
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { type Resource, resources } from "@rolldeck/contracts/plan";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { setPoolSizes } from "@rolldeck/db/reconcile/pools";
import { simulate } from "@rolldeck/dispatch/simulator/simulate";
import type { Overheads } from "@rolldeck/dispatch/simulator/simulation-input";
import type { Workload } from "@rolldeck/dispatch/testing/paper-workload";
import { startRedis } from "@rolldeck/queue/testing/redis";
import { z } from "zod";
import { order, type Scene, startScene } from "./agent/bench-scene.ts";
import { type LiveSpan, makespanMs, playLive, runConfigOf, slotBusyPct } from "./dispatch/live-run.ts";
import { measureOverheads } from "./dispatch/overheads.ts";
import { taskName, type WorkloadKind, workloadKinds, workloadOf } from "./dispatch/workloads.ts";
import { median } from "./quantile.ts";
import { readHistogram } from "./scale/read-histogram.ts";

type Progress = (line: string) => void;

/** A model call that works, and one that finishes. */
const turns = 2;
const calibrationSeed = 6;
const limitMs = 600_000;
const Flags = z.object({
  only: z.enum(["paper", "anchor"]).optional(),
  queue: z.enum(["postgres", "redis"]).default("postgres"),
  seeds: z
    .string()
    .default("1,2,3,4,5")
    .transform((list) => list.split(",").map(Number))
    .pipe(z.array(z.int().min(0)).min(1)),
});

export async function run(args: string[], progress: Progress): Promise<object> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ args, options: { seeds: text, only: text, queue: text } });
  const { only, seeds, queue } = Flags.parse(values);
  const kinds = workloadKinds.filter((kind) => only === undefined || kind === only);
  const folder = await mkdtemp(path.join(tmpdir(), "rolldeck-dispatch-"));
  // The account that runs Postgres must be able to enter it.
  await chmod(folder, 0o711);
  const stops: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const names = kinds.flatMap((kind) => [calibrationSeed, ...seeds].map((seed) => taskName(kind, seed)));
    const redis = queue === "redis" ? await startRedis() : null;
    if (redis !== null) stops.push(() => redis.remove());
    const scene = await startScene(folder, {
      concurrency: 1024,
      workerScript: "e2e/bench/dispatch/timed-worker.ts",
      env: { ROLLDECK_BENCH_TASKS: names.join(","), ROLLDECK_REDIS_URL: redis?.url ?? "" },
      stops,
      progress,
    });
    await order(scene, { turns, hold: [] });
    const results = new Map<WorkloadKind, object>();
    for (const kind of kinds) results.set(kind, await measureKind(scene, kind, seeds));
    return { ...results.get("paper"), ...(results.has("anchor") ? { anchor: results.get("anchor") } : {}) };
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function measureKind(scene: Scene, kind: WorkloadKind, seeds: readonly number[]): Promise<object> {
  await setPoolSizes(scene.pool, poolSizes(workloadOf(taskName(kind, calibrationSeed))));
  const overheads = await calibrate(scene, kind);
  scene.progress(`${kind}: the engine adds ${JSON.stringify(overheads)}`);
  const measured: Measured[] = [];
  for (const seed of seeds) {
    const one = await measureSeed(scene, kind, seed, overheads);
    scene.progress(`${kind}, seed ${seed}: ${JSON.stringify(one)}`);
    measured.push(one);
  }
  const keys = Object.keys(measured[0] ?? {}) as (keyof Measured)[];
  return Object.fromEntries(keys.map((key) => [key, round(median(measured.map((one) => one[key])))]));
}

const poolSizes = ({ pools }: Workload): Partial<Record<Resource, number>> =>
  Object.fromEntries(resources.map((resource) => [resource, pools[resource]]));

async function calibrate(scene: Scene, kind: WorkloadKind): Promise<Overheads> {
  const before = await readHistogram(scene.workerPort, "rolldeck_worker_plan_seconds");
  const task = taskName(kind, calibrationSeed);
  const spans = await live(scene, task, "bounded", 1);
  const plans = (await readHistogram(scene.workerPort, "rolldeck_worker_plan_seconds")).since(before);
  return measureOverheads(workloadOf(task), spans, plans.mean * 1000);
}

interface Measured {
  readonly boundedS: number;
  readonly pipelineS: number;
  readonly speedup: number;
  readonly speedupIdeal: number;
  readonly prioritySpeedup: number;
  readonly engineOverheadPct: number;
  readonly simErrorPct: number;
  readonly slotBusyPct: number;
}

async function measureSeed(scene: Scene, kind: WorkloadKind, seed: number, overheads: Overheads): Promise<Measured> {
  const task = taskName(kind, seed);
  const workload = workloadOf(task);
  const priority = await live(scene, task, "priority", 2);
  const pipeline = await live(scene, task, "pipeline", 2);
  const bounded = await live(scene, task, "bounded", 1);
  const pipelineMs = makespanMs(pipeline, 1);
  const boundedMs = makespanMs(bounded, 1);
  const ideal = simulatedMs(workload, task, "pipeline");
  return {
    boundedS: boundedMs / 1000,
    pipelineS: pipelineMs / 1000,
    speedup: boundedMs / pipelineMs,
    speedupIdeal: simulatedMs(workload, task, "bounded") / ideal,
    prioritySpeedup: makespanMs(pipeline, 2) / makespanMs(priority, 2),
    engineOverheadPct: (pipelineMs / ideal - 1) * 100,
    simErrorPct: (simulatedMs(workload, task, "pipeline", overheads) / pipelineMs - 1) * 100,
    slotBusyPct: slotBusyPct(pipeline, 1, workload.bounds.run),
  };
}

async function live(scene: Scene, task: string, dispatcher: string, steps: number): Promise<LiveSpan[]> {
  scene.progress(`${task}: ${dispatcher}, ${steps} ${steps === 1 ? "step" : "steps"}`);
  return playLive(scene.pool, runConfigOf(workloadOf(task), { task, dispatcher, steps }), limitMs);
}

/** The same configuration in virtual time; updates take none, as the instant server's. */
function simulatedMs(workload: Workload, task: string, dispatcher: string, overheads?: Overheads): number {
  const { makespanMs: ms, steps } = simulate({
    config: RunConfig.parse(runConfigOf(workload, { task, dispatcher, steps: 1 })),
    pools: workload.pools,
    work: workload.work,
    taskSizes: [{ train: workload.groups, evaluate: null }],
    // Every timed rollout has one; the anchor's pool holds them all.
    taskSandboxes: ["image"],
    ...(overheads && { overheads }),
  });
  return (steps[0]?.endedAt ?? ms) - (steps[0]?.createdAt ?? 0);
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
