/**
 * What the control plane costs with thousands of rollouts in flight: the real worker and database, once with each queue, ten turns
 * a rollout against the instant completion server.
 * → {"postgres":{"launched","settled","peakInFlight","lost","double","cpuMsPerRollout","cpuMsPerTurn","reconcileP99Ms","memoryMB",
 * "ratio4096to64"},"redis":{…}}
 *
 * `peakInFlight`: rollouts in a stage at the moment when all of them wait for their second model call. `lost`: launched and not
 * settled with a reward, `double`: settled or committed a turn twice, both from the event log. CPU: user and system time of the worker process over the
 * whole run. `ratio4096to64`: CPU per rollout with all in flight ÷ with 64 at once. `reconcileP99Ms`: from reading the
 * snapshot to enqueued jobs, from the worker's histogram (linear inside a bucket). Flags: --rollouts <n> (4096), --only postgres|redis
 */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { startRedis } from "@rolldeck/queue/testing/redis";
import { z } from "zod";
import {
  cpuSeconds,
  launch,
  order,
  release,
  type Scene,
  startScene,
  statusKb,
  untilCompleted,
  untilHeld,
} from "./agent/bench-scene.ts";
import { readCounter, readHistogram } from "./scale/read-histogram.ts";

type Progress = (line: string) => void;
type Stops = (() => Promise<unknown>)[];

const turns = 10;
const groupSize = 8;
const few = 64;
/** Of the pass with few in flight: its cost per rollout does not depend on how long it goes on. */
const narrowRollouts = 1024;
const promptCharacters = 256;
/** From the second model call on a rollout is surely in its run stage. */
const heldTurn = 1;
const queues = ["postgres", "redis"] as const;
/** Of each pass, on a machine that others use too. */
const limitMs = 600_000;

const Flags = z.object({
  rollouts: z.coerce.number().int().min(few).multipleOf(groupSize).default(4096),
  only: z.enum(queues).optional(),
});

export async function run(args: string[], progress: Progress): Promise<object> {
  const { values } = parseArgs({ args, options: { rollouts: { type: "string" }, only: { type: "string" } } });
  const { rollouts, only } = Flags.parse(values);
  const results: Record<string, object> = {};
  for (const queue of queues.filter((name) => only === undefined || name === only)) {
    results[queue] = await withQueue(queue, rollouts, (line) => progress(`${queue}: ${line}`));
  }
  return results;
}

async function withQueue(queue: (typeof queues)[number], rollouts: number, progress: Progress): Promise<object> {
  const folder = await mkdtemp(path.join(tmpdir(), "rolldeck-scale-"));
  // The account that runs Postgres must be able to enter it.
  await chmod(folder, 0o711);
  const stops: Stops = [() => rm(folder, { recursive: true, force: true })];
  try {
    const redis = queue === "redis" ? await startRedis() : null;
    if (redis !== null) stops.push(() => redis.remove());
    const scene = await startScene(folder, {
      concurrency: rollouts,
      prompts: [promptCharacters],
      env: redis === null ? {} : { ROLLDECK_REDIS_URL: redis.url },
      stops,
      progress,
    });
    return await measure(scene, rollouts);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function measure(scene: Scene, rollouts: number): Promise<object> {
  const idleKb = await statusKb(scene.workerPid, "VmRSS");
  // The process compiles its code; a first run is no measure of the others.
  await pass(scene, { rollouts: Math.min(rollouts, 512), bound: few, hold: false });
  await writeFile(`/proc/${scene.workerPid}/clear_refs`, "5");
  const before = await readHistogram(scene.workerPort, "rolldeck_worker_plan_seconds");
  const wide = await pass(scene, { rollouts, bound: rollouts, hold: true });
  const after = await readHistogram(scene.workerPort, "rolldeck_worker_plan_seconds");
  const highestKb = await statusKb(scene.workerPid, "VmHWM");
  const narrow = await pass(scene, { rollouts: Math.min(rollouts, narrowRollouts), bound: few, hold: false });
  return {
    launched: rollouts,
    settled: wide.settled,
    peakInFlight: wide.inFlight,
    lost: wide.launched - wide.settled + (narrow.launched - narrow.settled),
    double: wide.double + narrow.double,
    cpuMsPerRollout: round(wide.cpuMsPerRollout),
    cpuMsPerTurn: round(wide.cpuMsPerRollout / turns),
    reconcileP99Ms: round(after.since(before).quantile(0.99) * 1000),
    memoryMB: Math.round((highestKb - idleKb) / 1024),
    ratio4096to64: round(wide.cpuMsPerRollout / narrow.cpuMsPerRollout),
  };
}

interface Pass {
  readonly launched: number;
  readonly cpuMsPerRollout: number;
  readonly settled: number;
  readonly double: number;
  readonly inFlight: number;
}

async function pass(
  scene: Scene,
  { rollouts, bound, hold }: { readonly rollouts: number; readonly bound: number; readonly hold: boolean },
): Promise<Pass> {
  await order(scene, { turns, hold: hold ? [heldTurn] : [] });
  const cpuBefore = await cpuSeconds(scene.workerPid);
  const runId = await launch(scene, { promptCharacters, groups: rollouts / groupSize, groupSize, bound });
  let inFlight = bound;
  if (hold) {
    await untilHeld(scene, heldTurn, rollouts, limitMs);
    inFlight = await inFlightOf(scene, runId);
    await release(scene);
  }
  await untilCompleted(scene, runId, limitMs);
  const cpuMs = ((await cpuSeconds(scene.workerPid)) - cpuBefore) * 1000;
  const cpuMsPerRollout = cpuMs / rollouts;
  const counts = await countedIn(scene, runId);
  const late = await readCounter(scene.workerPort, "rolldeck_worker_late_deliveries_total");
  scene.progress(
    `${inFlight} in flight: ${cpuMsPerRollout.toFixed(2)} CPU ms a rollout; of ${rollouts} settled ${counts.settled}, double ${counts.double}; late deliveries so far ${late}`,
  );
  return { launched: rollouts, cpuMsPerRollout, inFlight, ...counts };
}

const Counts = z.object({ settled: z.int(), double: z.int() });

/** What the log says: a rollout settled once with a reward, and each of its turns committed once. */
async function countedIn({ pool }: Scene, runId: string): Promise<z.infer<typeof Counts>> {
  const { rows } = await pool.query(
    `with ends as (
       select rollout_id, count(*) as times, bool_and(body -> 'reward' <> 'null'::jsonb) as scored from events
       where run_id = $1 and type = 'rollout-status' and body ->> 'state' = 'settled' group by 1),
     sampled as (
       select rollout_id, body ->> 'turn' as turn, count(*) as times from events
       where run_id = $1 and type = 'turn-sampled' group by 1, 2)
     select (select count(*) from ends where scored)::int as settled,
       ((select count(*) from ends where times > 1) + (select count(*) from sampled where times > 1))::int as double`,
    [runId],
  );
  return Counts.parse(rows[0]);
}

async function inFlightOf({ pool }: Scene, runId: string): Promise<number> {
  const { rows } = await pool.query(
    "select count(*)::int as n from rollouts where run_id = $1 and state in ('queued', 'active')",
    [runId],
  );
  return z.int().parse(rows[0]?.n);
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
