/**
 * What it is worth that groups start while older ones train: the paper's workload on the live engine at 1:100 time (real worker, queue and
 * database, sandboxes and a model server that only take time), trainer and sampler as separate resources, ten steps.
 * → {"syncS","speedup1","speedup2","speedup4","maxStaleness1","maxStaleness2","maxStaleness4","colocatedSpeedup2","stalenessHistogram"}
 *
 * Each seed plays `pipeline` without a trainer: an update then takes 0.65 of its mean rollout time per step. `syncS` is `pipeline` with that
 * trainer, each step waiting for its update; `speedupS` = syncS ÷ `async` with staleness S, both from the first rollout that waits to the
 * last update. `maxStalenessS`: versions that a trained group's oldest turn lay behind the learner, at most. `colocatedSpeedup2`: the same
 * where nothing is sampled during an update. `stalenessHistogram`: trained groups by staleness with S = 2. Medians over seeds; the greatest
 * staleness and the sum of the histograms.
 * Flags: --steps 10, --seeds 1, --only 1,2,4,colocated, --ideal (adds the same of an engine that costs nothing, simulated), --part 1 (of
 * groups, slots and sandboxes only every n-th: a look on a busy machine; stragglers weigh more there)
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { resources } from "@rolldeck/contracts/plan";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { setPoolSizes } from "@rolldeck/db/reconcile/pools";
import { simulate } from "@rolldeck/dispatch/simulator/simulate";
import type { Workload } from "@rolldeck/dispatch/testing/paper-workload";
import { freePort } from "@rolldeck/queue/testing/free-port";
import { z } from "zod";
import { type Scene, startScene } from "./agent/bench-scene.ts";
import { type Played, play, totalMs } from "./async/played.ts";
import { runConfigOf } from "./dispatch/live-run.ts";
import { taskName, workloadOf } from "./dispatch/workloads.ts";
import { median } from "./quantile.ts";

type Progress = (line: string) => void;

const trainerShare = 0.65;
const limitMs = 1_800_000;
const kinds = ["1", "2", "4", "colocated"] as const;
type Kind = (typeof kinds)[number];
const stalenessOf = (kind: Kind): number => (kind === "colocated" ? 2 : Number(kind));

const parts = z.string().transform((text) => text.split(","));
const Flags = z.object({
  steps: z.string().transform(Number).pipe(z.int().min(1)).default(10),
  seeds: parts.pipe(z.array(z.string().transform(Number).pipe(z.int().min(0)))).default([1]),
  only: parts.pipe(z.array(z.enum(kinds))).default([...kinds]),
  ideal: z.boolean().default(false),
  part: z
    .string()
    .transform(Number)
    .pipe(z.literal([1, 2, 4, 8, 16]))
    .default(1),
});
type Flags = z.infer<typeof Flags>;

/** One seed's runs: what they took, and the staleness of what was trained. */
interface Measured {
  readonly syncMs: number;
  readonly ahead: ReadonlyMap<Kind, { readonly totalMs: number; readonly staleness: readonly number[] }>;
}

export async function run(args: string[], progress: Progress): Promise<object> {
  const text = { type: "string" } as const;
  const options = { steps: text, seeds: text, only: text, part: text, ideal: { type: "boolean" } } as const;
  const flags = Flags.parse(parseArgs({ args, options }).values);
  const folder = await mkdtemp(path.join(tmpdir(), "rolldeck-async-"));
  // The account that runs Postgres must be able to enter it.
  await chmod(folder, 0o711);
  const stops: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const measured: Measured[] = [];
  try {
    const { scene, order } = await startPlace(folder, flags, { stops, progress });
    for (const seed of flags.seeds) measured.push(await measureSeed(scene, order, flags, seed));
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
  const live = summary(measured, flags.only);
  return flags.ideal
    ? {
        ...live,
        ideal: summary(
          flags.seeds.map((seed) => ideal(flags, seed)),
          flags.only,
        ),
      }
    : live;
}

type Order = (order: { readonly updateMs: number; readonly colocated: boolean }) => Promise<unknown>;

async function startPlace(
  folder: string,
  flags: Flags,
  of: { readonly stops: (() => Promise<unknown>)[]; readonly progress: Progress },
): Promise<{ readonly scene: Scene; readonly order: Order }> {
  const port = await freePort();
  const sampling = `http://127.0.0.1:${port}`;
  const names = flags.seeds.map((seed) => taskName("paper", seed));
  const scene = await startScene(folder, {
    concurrency: 1024,
    serverScript: "e2e/bench/async/update-server.ts",
    serverEnv: { ROLLDECK_BENCH_SAMPLING_PORT: String(port) },
    workerScript: "e2e/bench/dispatch/timed-worker.ts",
    env: { ROLLDECK_BENCH_TASKS: names.join(","), ROLLDECK_BENCH_SAMPLING: sampling },
    ...of,
  });
  const { pools } = partOf(flags.seeds[0] ?? 1, flags.part);
  await setPoolSizes(scene.pool, Object.fromEntries(resources.map((resource) => [resource, pools[resource]])));
  return { scene, order: (order) => fetch(`${sampling}/order`, { method: "POST", body: JSON.stringify(order) }) };
}

async function measureSeed(scene: Scene, order: Order, flags: Flags, seed: number): Promise<Measured> {
  const { steps, only } = flags;
  const live = async (dispatcher: string, maxStaleness: number, trainer: Parameters<Order>[0]): Promise<Played> => {
    await order(trainer);
    scene.progress(`seed ${seed}: ${dispatcher}, staleness ${maxStaleness}, ${JSON.stringify(trainer)}`);
    const played = await play(scene.pool, configOf(flags, { seed, dispatcher, maxStaleness }), limitMs);
    scene.progress(
      `took ${(totalMs(played) / 1000).toFixed(2)} s; staleness ${JSON.stringify(played.staleness)}; ${told(played)}`,
    );
    return played;
  };
  const free = await live("pipeline", 0, { updateMs: 0, colocated: false });
  const rolloutMs = free.steps.reduce((sum, step) => sum + step.lastScoredAt - step.firstReadyAt, 0) / steps;
  const updateMs = trainerShare * rolloutMs;
  const syncMs = totalMs(await live("pipeline", 0, { updateMs, colocated: false }));
  const ahead = new Map<Kind, { totalMs: number; staleness: readonly number[] }>();
  for (const kind of only) {
    const played = await live("async", stalenessOf(kind), { updateMs, colocated: kind === "colocated" });
    scene.progress(`${kind}: ${(syncMs / totalMs(played)).toFixed(3)} times as fast`);
    ahead.set(kind, { totalMs: totalMs(played), staleness: played.staleness });
  }
  return { syncMs, ahead };
}

/** When each update began and ended, seconds from the first rollout: what a shortfall is read from. */
function told({ steps }: Played): string {
  const from = Math.min(...steps.map(({ firstReadyAt }) => firstReadyAt));
  const seconds = (at: number): string => ((at - from) / 1000).toFixed(1);
  return `updates ${steps.map(({ updateStartedAt, endedAt }) => `${seconds(updateStartedAt)}–${seconds(endedAt)}`).join(" ")}`;
}

function configOf(
  { steps, part }: Flags,
  of: { readonly seed: number; readonly dispatcher: string; readonly maxStaleness: number },
): RunConfigInput {
  const { seed, dispatcher, maxStaleness } = of;
  const change = { dispatcher: { maxStaleness } };
  return runConfigOf(partOf(seed, part), { task: taskName("paper", seed), dispatcher, steps, change });
}

function partOf(seed: number, part: number): Workload {
  const whole = workloadOf(taskName("paper", seed));
  const { bounds, pools, groups } = whole;
  return {
    ...whole,
    groups: groups / part,
    bounds: { init: bounds.init / part, run: bounds.run / part, evaluate: bounds.evaluate / part },
    pools: {
      sandbox: pools.sandbox / part,
      initSlot: pools.initSlot / part,
      runSlot: pools.runSlot / part,
      gradeSlot: pools.gradeSlot / part,
      gpu: pools.gpu,
    },
  };
}

/** The same configurations in virtual time, on an engine that costs nothing. */
function ideal(flags: Flags, seed: number): Measured {
  const { steps, only, part } = flags;
  const workload = partOf(seed, part);
  const simulated = (dispatcher: string, maxStaleness: number, trainer: { msPerStep: number; colocated?: boolean }) =>
    simulate({ ...simulationOf(workload, configOf(flags, { seed, dispatcher, maxStaleness })), trainer });
  const free = simulated("pipeline", 0, { msPerStep: 0 });
  const msPerStep = (trainerShare * free.makespanMs) / steps;
  const syncMs = simulated("pipeline", 0, { msPerStep }).makespanMs;
  const ahead = new Map(
    only.map((kind) => {
      const { makespanMs, staleness } = simulated("async", stalenessOf(kind), {
        msPerStep,
        colocated: kind === "colocated",
      });
      return [kind, { totalMs: makespanMs, staleness }] as const;
    }),
  );
  return { syncMs, ahead };
}

const simulationOf = (workload: Workload, config: RunConfigInput) => ({
  config: RunConfig.parse(config),
  pools: workload.pools,
  work: workload.work,
  // As many as its task has, whatever part is played.
  taskSizes: [{ train: workloadOf(taskName("paper", 1)).groups, evaluate: null }],
  // Every timed rollout has one.
  taskSandboxes: ["image" as const],
});

function summary(measured: readonly Measured[], only: readonly Kind[]): object {
  const of = (kind: Kind) =>
    measured.flatMap(({ syncMs, ahead }) => {
      const found = ahead.get(kind);
      return found === undefined ? [] : [{ speedup: syncMs / found.totalMs, staleness: found.staleness }];
    });
  const speedup = (kind: Kind) => round(median(of(kind).map((one) => one.speedup)));
  const bounds = (["1", "2", "4"] as const).filter((kind) => only.includes(kind));
  return {
    syncS: round(median(measured.map(({ syncMs }) => syncMs)) / 1000),
    ...Object.fromEntries(bounds.map((kind) => [`speedup${kind}`, speedup(kind)])),
    ...Object.fromEntries(
      bounds.map((kind) => [`maxStaleness${kind}`, Math.max(...of(kind).map(({ staleness }) => staleness.length - 1))]),
    ),
    ...(only.includes("colocated") ? { colocatedSpeedup2: speedup("colocated") } : {}),
    ...(only.includes("2") ? { stalenessHistogram: histogram(of("2").map(({ staleness }) => staleness)) } : {}),
  };
}

/** Groups by staleness, all seeds together. */
function histogram(counts: readonly (readonly number[])[]): Record<string, number> {
  const most = Math.max(...counts.map(({ length }) => length));
  return Object.fromEntries(
    Array.from({ length: most }, (_, age) => [age, counts.reduce((sum, one) => sum + (one[age] ?? 0), 0)]),
  );
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
