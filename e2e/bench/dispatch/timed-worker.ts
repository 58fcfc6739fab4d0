/**
 * The real worker over sandboxes that only take time. ROLLDECK_BENCH_TASKS: names as `taskName` makes them, comma-separated.
 * ROLLDECK_BENCH_SAMPLING: a server that spends the run stages' time (e2e/bench/async/update-server.ts); default: it passes here.
 */
import { createPool } from "@rolldeck/db/connect";
import { tools } from "@rolldeck/tools/registry";
import { z } from "zod";
import { compose } from "../../../apps/worker/src/compose.ts";
import { parseWorkerEnv } from "../../../apps/worker/src/env.ts";
import { keepHeapLean } from "../../../apps/worker/src/lean-heap.ts";
import { type TimedRollout, TimedRuntime, type Waits, waited } from "./timed-runtime.ts";
import { timedTask, work } from "./timed-task.ts";
import { workloadOf } from "./workloads.ts";

keepHeapLean();

const env = parseWorkerEnv(process.env, import.meta.dirname);
const pool = createPool(env.databaseUrl, { max: 2, applicationName: "bench-timed-worker" });
const names = (process.env.ROLLDECK_BENCH_TASKS ?? "").split(",");
const workloads = new Map(names.map((name) => [name, workloadOf(name)]));

const Row = z.object({
  id: z.string(),
  sample: z.int(),
  attempt: z.int(),
  task: z.string(),
  taskSet: z.int(),
  instanceIndex: z.int(),
  visit: z.int(),
});

const known = new Map<string, TimedRollout>();
let learning: Promise<void> | null = null;

async function rolloutOf(rolloutId: string): Promise<TimedRollout> {
  if (!known.has(rolloutId)) {
    learning ??= learn(rolloutId).finally(() => {
      learning = null;
    });
    await learning;
  }
  const found = known.get(rolloutId);
  if (found === undefined) throw new Error(`there is no rollout ${rolloutId}`);
  return found;
}

/**
 * All rollouts of its run that wait for their first stage are read at once: a question for each would be work of the benchmark's
 * own. Groups of one instance may be drawn in one statement: then their places in the step tell which came first.
 */
async function learn(rolloutId: string): Promise<void> {
  const { rows } = await pool.query(
    `select r.id, r.sample, r.attempt, g.task, g.task_set as "taskSet", g.instance_index as "instanceIndex", (
       select count(*)::int from groups o where o.task = g.task and o.instance_id = g.instance_id and o.run_id = g.run_id
         and (substr(o.id, 1, 10), o.position) < (substr(g.id, 1, 10), g.position)) as visit
     from rollouts r join groups g on g.id = r.group_id
     where r.run_id = (select run_id from rollouts where id = $1) and (r.id = $1 or (r.stage = 'init' and r.state <> 'settled'))`,
    [rolloutId],
  );
  for (const row of z.array(Row).parse(rows)) if (!known.has(row.id)) known.set(row.id, timed(row));
}

function timed(row: z.infer<typeof Row>): TimedRollout {
  const workload = workloads.get(row.task);
  if (workload === undefined) throw new Error(`no workload is named ${row.task}`);
  const instance = { taskSet: row.taskSet, split: "train", instanceIndex: row.instanceIndex } as const;
  const key = { instance, visit: row.visit, sample: row.sample, attempt: row.attempt };
  const { initMs, runMs, evaluateMs } = workload.work(key);
  return { stageMs: { init: initMs, run: runMs, evaluate: evaluateMs }, exitCode: row.sample % 2 };
}

const sampling = process.env.ROLLDECK_BENCH_SAMPLING;
const waits: Waits = async (stage, ms, signal) => {
  if (stage !== "run" || sampling === undefined) return waited(ms, signal);
  const { ok, status } = await fetch(`${sampling}/run`, { method: "POST", body: JSON.stringify({ ms }), signal });
  if (!ok) throw new Error(`the sampling server answered ${status}`);
};

const runtime = new TimedRuntime(rolloutOf, waits);
const tasks = Object.fromEntries([...workloads].map(([name, { groups }]) => [name, timedTask(name, groups)]));
const worker = await compose(env, { tasks, tools: { ...tools, echo: work }, runtime });
process.once("SIGTERM", () => {
  Promise.all([worker.stop(), pool.end()]).then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
await worker.start();
process.stdout.write("worker started\n");
