/** One part of the chaos benchmark: a run is launched, struck until it has settled and lost enough, stopped, and its log is judged. */
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Policy, startScriptedWorker } from "@rolldeck/backends/testing/scripted-worker";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { readDeployment } from "@rolldeck/db/reads/live-sandboxes";
import { setPoolSizes } from "@rolldeck/db/reconcile/pools";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { z } from "zod";
import { preparePython } from "../../../apps/cli/src/start/python-environment.ts";
import { type ChaosStack, type ModelServer, startChaosStackOn } from "../../chaos/chaos-stack.ts";
import { checkLog } from "../../chaos/check-log.ts";
import { dealFaults, seededRandom } from "../../chaos/faults.ts";
import { followLog } from "../../chaos/follow-log.ts";
import { longPolicy } from "../../chaos/long-rollouts.ts";
import { root } from "../../chaos/process-under-test.ts";
import { startRealGpuWorker } from "../../chaos/real-gpu-worker.ts";
import { watchPools } from "../../chaos/watch-pools.ts";
import { type PartName, parts } from "./parts.ts";
import type { SandboxPlace } from "./running-sandboxes.ts";

export interface PartOptions {
  readonly rollouts: number;
  readonly kills: number;
  /** Longest time of strikes; what was not reached by then shows in the counts. */
  readonly minutes: number;
  readonly seed: number;
  /** Made here. */
  readonly folder: string;
}
export interface PartResult {
  readonly rollouts: number;
  readonly kills: number;
  readonly lost: number;
  readonly double: number;
  readonly gaps: number;
  readonly leaked: number;
  readonly sandboxes: SandboxPlace;
}
type Progress = (line: string) => void;

const workers = 3;
/** Fewer than the bounds could hold, so that the pool is always full. */
const sandboxPool = 40;
const leastPauseMs = 300;
const mostPauseMs = 2_000;

export async function runPart(name: PartName, options: PartOptions, progress: Progress): Promise<PartResult> {
  const { queue, gpu, config } = parts[name];
  await mkdir(options.folder, { recursive: true });
  const server =
    gpu === "real"
      ? await realGpu(options.folder, progress)
      : await startScriptedWorker({ policy: policyOf(config), delayMs });
  const stack = await startChaosStackOn<ModelServer>(server, {
    ...{ workers, queue, script: "boxed-worker", apiFolder: options.folder },
    env: { ROLLDECK_DATA_DIR: options.folder },
  });
  try {
    await setPoolSizes(stack.pool, { sandbox: sandboxPool });
    return await strikeAndJudge(stack, await stack.launch(config), options, progress);
  } finally {
    await stack.close();
  }
}

const calls = 3;
const delayMs = 20;

/** Some calls, then an answer; never the same call twice in a row. */
function policyOf({ taskSets }: RunConfigInput): Policy {
  if (taskSets[0]?.name !== "boxed") return longPolicy(calls).policy;
  return ({ prompt }) => {
    const done = prompt.split("<|tool|>").length - 1;
    return done < calls ? `[bash(command="seq ${done + 1}")]` : '[finish(answer="1")]';
  };
}

async function realGpu(folder: string, progress: Progress): Promise<ModelServer> {
  const signal = new AbortController().signal;
  process.env.ROLLDECK_PYTHON ??= await preparePython({
    ...{ root, withTests: false, torch: undefined, env: process.env, signal },
    onProgress: ({ step }) => progress(step),
  });
  return startRealGpuWorker(path.join(folder, "gpu-worker"));
}

async function strikeAndJudge(
  stack: ChaosStack,
  runId: string,
  options: PartOptions,
  progress: Progress,
): Promise<PartResult> {
  if (stack.api === null) throw new TypeError("this part has no api");
  const reader = followLog(stack.api.rolldeck, runId);
  const pools = watchPools(stack.pool);
  await stack.until("the first rollout is settled", async () => (await settledOf(stack, runId)) > 0, 120_000);
  const kills = await strikeUntilEnough(stack, runId, options, progress);
  await moveRun(stack.pool, runId, "stopping", null);
  const status = () => stack.value("select status from runs where id = $1", [runId]);
  await stack.until("the run is stopped", async () => (await status()) === "stopped", 120_000);
  progress(`stopped: ${JSON.stringify(await endingsOf(stack, runId))}`);
  await Promise.all(stack.workers.map((worker) => worker.kill()));
  await reader.end(Number(await stack.value("select next_seq - 1 from runs where id = $1", [runId])));
  const broken = [...(await checkLog(stack.pool, runId)), ...(await pools.end())];
  for (const rule of broken) progress(`broken: ${rule}`);
  progress(`${pools.looks} looks at the pools; the log was followed to ${reader.last}`);
  const deployment = await readDeployment(stack.pool);
  return {
    ...{ rollouts: await settledOf(stack, runId), kills },
    ...byMeaning(broken, reader.gaps),
    sandboxes: { folder: options.folder, deployment, stateFolder: path.join(options.folder, "sandboxes") },
  };
}

/** Strikes until both counts are reached. @returns processes that were killed */
async function strikeUntilEnough(stack: ChaosStack, runId: string, options: PartOptions, progress: Progress) {
  const random = seededRandom(options.seed);
  const deal = dealFaults(stack, random);
  const struck = new Map<string, number>();
  let kills = 0;
  for (const end = performance.now() + options.minutes * 60_000; ; ) {
    const settled = await settledOf(stack, runId);
    const isEnough = settled >= options.rollouts && kills >= options.kills;
    if (isEnough || performance.now() > end) {
      progress(`struck${isEnough ? "" : " until the time was over"}: ${JSON.stringify(Object.fromEntries(struck))}`);
      return kills;
    }
    const [name, fault] = deal();
    progress(`${settled} settled, ${kills} kills; ${name}`);
    await fault.strike(stack, runId, random);
    kills += fault.kills;
    struck.set(name, (struck.get(name) ?? 0) + 1);
    await sleep(leastPauseMs + random() * (mostPauseMs - leastPauseMs));
  }
}

async function settledOf(stack: ChaosStack, runId: string): Promise<number> {
  const sql = "select count(*)::int from rollouts where run_id = $1 and state = 'settled'";
  // Postgres may just be coming back.
  const { settled } = await stack.until("a count of rollouts", async () => ({
    settled: await stack.value(sql, [runId]),
  }));
  return z.int().parse(settled);
}

async function endingsOf({ pool }: ChaosStack, runId: string): Promise<Record<string, number>> {
  const { rows } = await pool.query(
    `select coalesce(ending, state) as ending, count(*)::int as n from rollouts where run_id = $1 group by 1
     union all select 'steps done', count(*)::int from steps where run_id = $1 and state = 'done'
     union all select 'attempts', count(*)::int from attempts a join rollouts r on r.id = a.rollout_id where r.run_id = $1`,
    [runId],
  );
  return Object.fromEntries(rows.map(({ ending, n }) => [ending, n]));
}

/** What a broken rule means, by its words. */
const lost = /trained every rollout|has no rollout under way/;
const double = /exactly once|one event|two steps|tokens of a rollout twice|ends once/;
const leaked = /outlives its rollout|holds no lease/;

function byMeaning(broken: readonly string[], unread: number): Pick<PartResult, "lost" | "double" | "gaps" | "leaked"> {
  const count = (words: RegExp): number => broken.filter((rule) => words.test(rule)).length;
  const known = { lost: count(lost), double: count(double), leaked: count(leaked) };
  return { ...known, gaps: broken.length - known.lost - known.double - known.leaked + unread };
}
