/**
 * A worker on real parts: a fresh Postgres database, a queue in it or in Redis, the scripted model server over HTTP. Only the policy
 * is scripted; everything else is what production runs.
 */
import {
  type ScriptedWorker,
  type ScriptedWorkerOptions,
  startScriptedWorker,
} from "@rolldeck/backends/testing/scripted-worker";
import type { RunEvent } from "@rolldeck/contracts/events";
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import { presets } from "@rolldeck/contracts/presets";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { createRun } from "@rolldeck/db/runs/create-run";
import { createTestDatabase, type TestDatabase } from "@rolldeck/db/testing/postgres";
import { startRedis } from "@rolldeck/queue/testing/redis";
import { compose, type WorkerParts } from "../src/compose.ts";
import { parseWorkerEnv } from "../src/env.ts";
import { sleep } from "../src/wait-for.ts";
import type { WorkerProcess } from "../src/worker-process.ts";

export interface RigOptions extends ScriptedWorkerOptions {
  readonly queue?: "postgres" | "redis";
  /** How many worker processes; they share this one's event loop. Default 1. */
  readonly workers?: number;
  readonly parts?: WorkerParts;
  /** More of the workers' environment. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface Rig {
  readonly database: TestDatabase;
  readonly gpu: ScriptedWorker;
  readonly workers: readonly WorkerProcess[];
  addWorker(parts?: WorkerParts): Promise<WorkerProcess>;
  launch(config: RunConfigInput): Promise<string>;
  status(runId: string): Promise<{ readonly status: RunStatus; readonly reason: string | null }>;
  /** One value of one row. */
  value(sql: string, parameters?: readonly unknown[]): Promise<unknown>;
  events(runId: string): Promise<RunEvent["body"][]>;
  /** Waits until `look` gives a truthy value. @throws with the run's last events when it does not within `limitMs` */
  until<T>(what: string, look: () => Promise<T>, limitMs?: number): Promise<NonNullable<T>>;
  untilStatus(runId: string, ...statuses: RunStatus[]): Promise<RunStatus>;
  close(): Promise<void>;
}

/** The smoke preset with changes at the top level of its parts. */
export function smokeConfig(change: Partial<RunConfigInput> = {}): RunConfigInput {
  const { config } = presets.smoke;
  return {
    ...config,
    tags: [...config.tags],
    taskSets: config.taskSets.map((set) => ({ ...set })),
    ...change,
    // Room for the scripted policy's answers.
    agent: { ...config.agent, maxTurns: 8, sampling: { temperature: 1, maxTokensPerTurn: 32 }, ...change.agent },
    algorithm: { ...config.algorithm, ...change.algorithm },
    budget: { ...config.budget, ...change.budget },
  };
}

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const [database, gpu] = await Promise.all([createTestDatabase({ max: 5 }), startScriptedWorker(options)]);
  const redis = options.queue === "redis" ? await startRedis() : null;
  const workers: WorkerProcess[] = [];
  const addWorker = async (parts: WorkerParts = options.parts ?? {}): Promise<WorkerProcess> => {
    const env = parseWorkerEnv(
      {
        ROLLDECK_DATABASE_URL: database.url,
        ROLLDECK_REDIS_URL: redis?.url,
        ROLLDECK_GPU_WORKER_URL: gpu.url,
        ROLLDECK_GPU_WORKER_KEY: gpu.apiKey,
        ROLLDECK_LOG_LEVEL: process.env.ROLLDECK_LOG_LEVEL ?? "silent",
        ...options.env,
      },
      import.meta.dirname,
    );
    const worker = await compose(env, parts);
    await worker.start();
    workers.push(worker);
    return worker;
  };
  for (let n = 0; n < (options.workers ?? 1); n++) await addWorker();
  const value = async (sql: string, parameters: readonly unknown[] = []) => {
    const { rows } = await database.pool.query({ text: sql, values: [...parameters], rowMode: "array" });
    return rows[0]?.[0];
  };
  const status = async (runId: string) => {
    const { rows } = await database.pool.query("select status, reason from runs where id = $1", [runId]);
    return rows[0];
  };
  const events = async (runId: string) => {
    const { rows } = await database.pool.query("select body from events where run_id = $1 order by seq", [runId]);
    return rows.map((row) => row.body);
  };
  const until = async <T>(what: string, look: () => Promise<T>, limitMs = 60_000): Promise<NonNullable<T>> => {
    for (const end = performance.now() + limitMs; performance.now() < end; await sleep(25)) {
      const found = await look();
      if (found) return found;
    }
    throw new Error(`not within ${limitMs / 1000} s: ${what}; ${await describe(database)}`);
  };
  return {
    database,
    gpu,
    workers,
    addWorker,
    launch: async (config) => {
      const { runId } = await createRun(database.pool, { config: RunConfig.parse(config) });
      workers[0]?.context.requestReconcile(runId);
      return runId;
    },
    status,
    value,
    events,
    until,
    untilStatus: (runId, ...statuses) =>
      until(`run is ${statuses.join(" or ")}`, async () => {
        const now = await status(runId);
        return statuses.includes(now.status) ? (now.status as RunStatus) : null;
      }),
    close: async () => {
      await Promise.all(workers.map((worker) => worker.stop()));
      await Promise.all([gpu.close(), redis?.remove()]);
      await database.drop();
    },
  };
}

/** Where every run and rollout is, for the message of a test that waited in vain. */
async function describe(database: TestDatabase): Promise<string> {
  const { rows: runs } = await database.pool.query(
    "select id, status, reason, step, wake, handled_wake, serving_version, prepare_failures, boot from runs",
  );
  const { rows: rollouts } = await database.pool.query(
    "select stage, state, outcome, ending, reason, count(*)::int from rollouts group by 1, 2, 3, 4, 5",
  );
  const { rows: last } = await database.pool.query("select body from events order by at desc, seq desc limit 5");
  return JSON.stringify({ runs, rollouts, last }, null, 1);
}
