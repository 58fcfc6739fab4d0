/** Real worker processes, and the api where asked for, on a real Postgres (or Redis) and a model server: what chaos kills and restarts. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ScriptedWorker,
  type ScriptedWorkerOptions,
  startScriptedWorker,
} from "@rolldeck/backends/testing/scripted-worker";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { createRun } from "@rolldeck/db/runs/create-run";
import { createTestDatabase, startTestPostgres, type TestPostgres } from "@rolldeck/db/testing/postgres";
import { startRedis, type TestRedis } from "@rolldeck/queue/testing/redis";
import { ApiUnderTest } from "./api-under-test.ts";
import { bundle, ProcessUnderTest, type Program, root } from "./process-under-test.ts";

/** The scripted one, or the real one of Python. */
export interface ModelServer {
  readonly url: string;
  readonly apiKey: string;
  /** As kill −9 and a start. */
  restart(options?: { readonly downMs?: number }): Promise<void>;
  close(): Promise<void>;
}

export interface ChaosStack<Gpu extends ModelServer = ModelServer> {
  readonly pool: Pool;
  readonly databaseUrl: string;
  readonly postgres: TestPostgres;
  readonly redis: TestRedis | null;
  readonly gpu: Gpu;
  readonly api: ApiUnderTest | null;
  readonly workers: ProcessUnderTest[];
  startWorker(env?: Readonly<Record<string, string>>): Promise<ProcessUnderTest>;
  launch(config: RunConfigInput): Promise<string>;
  value(sql: string, parameters?: readonly unknown[]): Promise<unknown>;
  until<T>(what: string, look: () => Promise<T>, limitMs?: number): Promise<NonNullable<T>>;
  close(): Promise<void>;
}

export interface ChaosStackOptions {
  readonly queue?: "postgres" | "redis";
  readonly workers?: number;
  /** Of the workers, in this folder. Default: the real one that may be told where to end itself. */
  readonly script?: string;
  /** More of the workers' environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** An api too, with its own data folder there. */
  readonly apiFolder?: string;
}

export const startChaosStack = async (
  options: ScriptedWorkerOptions & ChaosStackOptions = {},
): Promise<ChaosStack<ScriptedWorker>> => startChaosStackOn(await startScriptedWorker(options), options);

/** @param gpu is the stack's from now on: it closes it */
export async function startChaosStackOn<Gpu extends ModelServer>(
  gpu: Gpu,
  options: ChaosStackOptions = {},
): Promise<ChaosStack<Gpu>> {
  const script = options.script ?? "worker-under-test";
  const program: Program = { name: script, entry: `e2e/chaos/${script}.ts`, app: "worker", ready: "worker started" };
  await bundle(program);
  const [postgres, database] = await Promise.all([startTestPostgres(), createTestDatabase({ max: 5 })]);
  const redis = options.queue === "redis" ? await startRedis() : null;
  const workers: ProcessUnderTest[] = [];
  const { pool } = database;
  const common = { ROLLDECK_DATABASE_URL: database.url, ROLLDECK_REDIS_URL: redis?.url ?? "", ROLLDECK_ROOT: root };
  const startWorker = async (env: Readonly<Record<string, string>> = {}) => {
    const gpuEnv = { ROLLDECK_GPU_WORKER_URL: gpu.url, ROLLDECK_GPU_WORKER_KEY: gpu.apiKey };
    const worker = new ProcessUnderTest(program, { ...common, ...gpuEnv, ...options.env, ...env });
    workers.push(worker);
    await worker.started();
    return worker;
  };
  for (let n = 0; n < (options.workers ?? 1); n++) await startWorker();
  const { apiFolder } = options;
  const api = apiFolder === undefined ? null : await ApiUnderTest.start({ ...common, ROLLDECK_DATA_DIR: apiFolder });
  const value = async (sql: string, parameters: readonly unknown[] = []): Promise<unknown> => {
    const { rows } = await pool.query({ text: sql, values: [...parameters], rowMode: "array" });
    return rows[0]?.[0];
  };
  return {
    pool,
    databaseUrl: database.url,
    postgres,
    redis,
    gpu,
    api,
    workers,
    startWorker,
    launch: async (config) => (await createRun(pool, { config: RunConfig.parse(config) })).runId,
    value,
    until: async (what, look, limitMs = 60_000) => {
      for (const end = performance.now() + limitMs; performance.now() < end; await sleep(50)) {
        // While Postgres restarts a look fails; the next one tells.
        const found = await look().catch(() => null);
        if (found) return found;
      }
      throw new Error(`not within ${limitMs / 1000} s: ${what}; ${await howThingsStand(pool)}`);
    },
    close: async () => {
      await Promise.all([...workers.map((worker) => worker.kill()), api?.kill()]);
      await Promise.all([gpu.close(), redis?.remove()]);
      await database.drop();
    },
  };
}

async function howThingsStand(pool: Pool): Promise<string> {
  const { rows: runs } = await pool.query("select id, status, reason, step, wake, handled_wake, boot from runs");
  const { rows: rollouts } = await pool.query(
    "select stage, state, outcome, ending, reason, count(*)::int from rollouts group by 1, 2, 3, 4, 5",
  );
  return JSON.stringify({ runs, rollouts }, null, 1);
}
