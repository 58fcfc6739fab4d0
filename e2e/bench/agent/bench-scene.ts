/**
 * What the benchmarks of whole rollouts share: embedded Postgres, the real worker with the echo task, the instant completion server
 * in a process of its own, and what the kernel says of the worker.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { createPool, type Pool } from "@rolldeck/db/connect";
import { startEmbeddedPostgres } from "@rolldeck/db/embedded-postgres";
import { migrate } from "@rolldeck/db/migrate";
import { createRun } from "@rolldeck/db/runs/create-run";
import { freePort } from "@rolldeck/queue/testing/free-port";
import { z } from "zod";
import { startProcess } from "../../stack/started-process.ts";

type Progress = (line: string) => void;
export interface Scene {
  readonly pool: Pool;
  readonly workerPid: number;
  /** Of the worker's /metrics. */
  readonly workerPort: number;
  readonly serverUrl: string;
  readonly progress: Progress;
}
export interface SceneOptions {
  /** Rollouts that one worker process may work on at once. */
  readonly concurrency: number;
  /** First prompts of the echo tasks, characters. Default none. */
  readonly prompts?: readonly number[];
  /** Default: the worker of the echo tasks. */
  readonly workerScript?: string;
  /** Default: the instant completion server. Its first line is JSON with "url" and "apiKey". */
  readonly serverScript?: string;
  readonly serverEnv?: Readonly<Record<string, string>>;
  /** More of the worker's environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stops: (() => Promise<unknown>)[];
  readonly progress: Progress;
}

const limitMs = 240_000;

/** A fresh database, the server and one worker; all end with `stops`, in reverse. */
export async function startScene(folder: string, options: SceneOptions): Promise<Scene> {
  const { stops, progress } = options;
  const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, "postgres") });
  stops.push(() => postgres.stop());
  await migrate(postgres.url);
  const pool = createPool(postgres.url, { max: 2, applicationName: "bench-agent" });
  stops.push(() => pool.end());
  const script = options.serverScript ?? "e2e/bench/agent/instant-server.ts";
  const server = await startNamed(script, options.serverEnv ?? {}, (line) => line.startsWith("{"), options);
  const { url, apiKey } = z.object({ url: z.string(), apiKey: z.string() }).parse(JSON.parse(server.said));
  const workerPort = await freePort();
  const env = {
    ROLLDECK_DATABASE_URL: postgres.url,
    ROLLDECK_GPU_WORKER_URL: url,
    ROLLDECK_GPU_WORKER_KEY: apiKey,
    ROLLDECK_LOG_LEVEL: "warn",
    ROLLDECK_WORKER_CONCURRENCY: String(options.concurrency),
    ROLLDECK_WORKER_PORT: String(workerPort),
    ROLLDECK_BENCH_PROMPTS: (options.prompts ?? []).join(","),
    ...options.env,
  };
  const worker = await startNamed(
    options.workerScript ?? "e2e/bench/agent/bench-worker.ts",
    env,
    (line) => line === "worker started",
    options,
  );
  progress("worker and server are up");
  return { pool, workerPid: worker.pid, workerPort, serverUrl: url, progress };
}

/** Resolves with the first line of the process that counts. */
async function startNamed(
  script: string,
  env: Readonly<Record<string, string>>,
  counts: (line: string) => boolean,
  { stops, progress }: Pick<SceneOptions, "stops" | "progress">,
): Promise<{ readonly pid: number; readonly said: string }> {
  let heard: (line: string) => void = () => undefined;
  const said = new Promise<string>((resolve) => {
    heard = resolve;
  });
  const child = startProcess({
    script,
    env,
    onLine: (line) => {
      if (counts(line)) heard(line);
      else progress(line);
    },
  });
  stops.push(() => child.stop());
  return { pid: child.pid, said: await within(said, `${script} did not start`) };
}

export interface Launch {
  readonly promptCharacters: number;
  readonly groups: number;
  readonly groupSize: number;
  /** Of each stage. */
  readonly bound: number;
}

/** An evaluation of `groups × groupSize` rollouts. @returns the run's id */
export async function launch({ pool }: Scene, of: Launch): Promise<string> {
  const config: RunConfigInput = {
    kind: "evaluate",
    name: "agent bench",
    model: { name: "quickstart" },
    taskSets: [{ name: `echo-${of.promptCharacters}` }],
    agent: { maxTurns: 1000, maxContextTokens: 65_536, describeTools: false, sampling: { maxTokensPerTurn: 64 } },
    dispatcher: { name: "pipeline", bounds: { init: of.bound, run: of.bound, evaluate: of.bound } },
    evaluation: { samples: of.groups, samplesPerInstance: of.groupSize },
  };
  return (await createRun(pool, { config: RunConfig.parse(config) })).runId;
}

/** Begins anew: so many turns a rollout, and these turns held until `release`. */
export const order = ({ serverUrl }: Scene, of: { readonly turns: number; readonly hold: readonly number[] }) =>
  fetch(`${serverUrl}/bench`, { method: "POST", body: JSON.stringify(of) });

export const release = ({ serverUrl }: Scene) => fetch(`${serverUrl}/bench/release`, { method: "POST" });

/** Until so many requests wait at a held turn. */
export async function untilHeld(
  { serverUrl, progress }: Scene,
  turn: number,
  count: number,
  withinMs = limitMs,
): Promise<void> {
  let said = 0;
  await until(`turn ${turn} of all rollouts`, withinMs, async () => {
    const held = z.record(z.string(), z.int()).parse(await (await fetch(`${serverUrl}/bench`)).json());
    const here = held[String(turn)] ?? 0;
    if (here >= said + 500) {
      progress(`${here} of ${count} rollouts wait at turn ${turn}`);
      said = here;
    }
    return here === count;
  });
}

export async function untilCompleted({ pool }: Pick<Scene, "pool">, runId: string, withinMs = limitMs): Promise<void> {
  await until("the run's end", withinMs, async () => {
    const { rows } = await pool.query("select status, reason from runs where id = $1", [runId]);
    const { status, reason } = rows[0] ?? {};
    if (status === "failed" || status === "stopped") throw new Error(`the run ended ${status}: ${reason}`);
    return status === "completed";
  });
}

async function until(what: string, withinMs: number, look: () => Promise<boolean>): Promise<void> {
  const endsAt = Date.now() + withinMs;
  while (!(await look())) {
    if (Date.now() > endsAt) throw new Error(`not within ${withinMs / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function within<T>(promised: Promise<T>, otherwise: string): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(otherwise)), 60_000).unref();
  });
  return Promise.race([promised, late]);
}

/** User and system time of a process, all its threads, from the kernel's count of ticks (100 a second on Linux). */
export async function cpuSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8");
  // The name stands in brackets and may hold anything; utime and stime are the 14th and 15th fields.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Resident memory of a process now, or at its most. */
export async function statusKb(pid: number, name: "VmRSS" | "VmHWM"): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(text)?.[1]);
}
