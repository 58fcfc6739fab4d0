/** Real worker processes on a real Postgres (or Redis) and the scripted model server: what chaos kills, stops and restarts. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
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
import { build } from "esbuild";

const root = path.resolve(import.meta.dirname, "../..");
const bundleOf = (script: string) => path.join(root, "apps/worker/dist/chaos", `${script}.mjs`);

/** Once per process: workers then start in a fraction of the time that compiling each of them takes. */
const bundled = new Map<string, Promise<unknown>>();
function bundleWorker(script: string): Promise<unknown> {
  const made = bundled.get(script);
  if (made !== undefined) return made;
  const making = build({
    entryPoints: [path.join(import.meta.dirname, `${script}.ts`)],
    outfile: bundleOf(script),
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    logLevel: "error",
    plugins: [
      {
        name: "keep-packages-external",
        setup: (api) =>
          api.onResolve({ filter: /^[^./]/ }, (args) =>
            args.kind === "entry-point" || args.path.startsWith("@rolldeck/")
              ? undefined
              : { path: args.path, external: true },
          ),
      },
    ],
  });
  bundled.set(script, making);
  return making;
}

export class WorkerUnderTest {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #started: Promise<void>;
  #said = "";

  /** @param script file in this folder, without its ending; bundled already */
  constructor(script: string, env: Readonly<Record<string, string>>) {
    // Without a channel and with an open stdin it lives until it is told, or killed.
    const child = spawn(process.execPath, [bundleOf(script)], {
      cwd: root,
      env: { ...cleanEnv(), ...env },
      stdio: "pipe",
    });
    this.#child = child;
    this.#exited = once(child, "exit");
    this.#started = new Promise((resolve, reject) => {
      const listen = (chunk: Buffer): void => {
        this.#said += chunk.toString();
        if (this.#said.includes("worker started")) resolve();
      };
      child.stdout?.on("data", listen);
      child.stderr?.on("data", listen);
      child.once("exit", () => reject(new Error(`the worker ended before it started: ${this.#said}`)));
    });
    this.#started.catch(() => undefined);
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }
  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }
  /** Everything it printed. */
  get output(): string {
    return this.#said;
  }
  get exitCode(): number | null {
    return this.#child.exitCode;
  }
  started(): Promise<void> {
    return this.#started;
  }
  async exited(): Promise<void> {
    await this.#exited;
  }
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }
  /** As the kernel ends it: no handler runs. */
  async kill(): Promise<void> {
    if (this.isAlive) this.#child.kill("SIGKILL");
    await this.#exited;
  }
}

const cleanEnv = (): Record<string, string> => ({ PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "/" });

export interface ChaosStack {
  readonly pool: Pool;
  readonly databaseUrl: string;
  readonly postgres: TestPostgres;
  readonly redis: TestRedis | null;
  readonly gpu: ScriptedWorker;
  readonly workers: WorkerUnderTest[];
  startWorker(env?: Readonly<Record<string, string>>): Promise<WorkerUnderTest>;
  launch(config: RunConfigInput): Promise<string>;
  value(sql: string, parameters?: readonly unknown[]): Promise<unknown>;
  until<T>(what: string, look: () => Promise<T>, limitMs?: number): Promise<NonNullable<T>>;
  close(): Promise<void>;
}

export async function startChaosStack(
  options: ScriptedWorkerOptions & {
    readonly queue?: "postgres" | "redis";
    readonly workers?: number;
    /** Of the workers. Default: the real one that may be told where to end itself. */
    readonly script?: string;
    /** More of the workers' environment. */
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<ChaosStack> {
  const script = options.script ?? "worker-under-test";
  await bundleWorker(script);
  const [postgres, database, gpu] = await Promise.all([
    startTestPostgres(),
    createTestDatabase({ max: 5 }),
    startScriptedWorker(options),
  ]);
  const redis = options.queue === "redis" ? await startRedis() : null;
  const workers: WorkerUnderTest[] = [];
  const { pool } = database;
  const startWorker = async (env: Readonly<Record<string, string>> = {}) => {
    const worker = new WorkerUnderTest(script, {
      ROLLDECK_DATABASE_URL: database.url,
      ROLLDECK_REDIS_URL: redis?.url ?? "",
      ROLLDECK_GPU_WORKER_URL: gpu.url,
      ROLLDECK_GPU_WORKER_KEY: gpu.apiKey,
      ROLLDECK_ROOT: root,
      ...options.env,
      ...env,
    });
    workers.push(worker);
    await worker.started();
    return worker;
  };
  for (let n = 0; n < (options.workers ?? 1); n++) await startWorker();
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
      const { rows } = await pool.query("select id, status, reason, step, wake, handled_wake, boot from runs");
      const { rows: rollouts } = await pool.query(
        "select stage, state, outcome, ending, reason, count(*)::int from rollouts group by 1, 2, 3, 4, 5",
      );
      throw new Error(`not within ${limitMs / 1000} s: ${what}; ${JSON.stringify({ rows, rollouts }, null, 1)}`);
    },
    close: async () => {
      await Promise.all(workers.map((worker) => worker.kill()));
      await Promise.all([gpu.close(), redis?.remove()]);
      await database.drop();
    },
  };
}
