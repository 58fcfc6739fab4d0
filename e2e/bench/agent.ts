/**
 * What a turn costs one worker process: the real worker, embedded Postgres and queue, an instant completion server in a process
 * of its own, a tool that answers 50 tokens at once. → {"turnsPerS","cpuMsPerTurn":{"2k","8k","32k"},"peakMemoryMB"}
 *
 * `turnsPerS`: turns ÷ CPU seconds (user and system) of the worker process, 512 rollouts of 20 turns that grow to about 2.6k tokens,
 * all stages and durable writes included; a run before it warms the process up.
 * `cpuMsPerTurn`: from all rollouts' second model call to all rollouts' 20th, so at contexts of about that length, first prompts not
 * among them. `peakMemoryMB`: peak resident memory with 512 rollouts at 32k tokens, over the same process idle before any run.
 * Rollouts come in groups of 8 of one instance. Flags: --rollouts <n> (512), --only <parts> (of throughput,2k,8k,32k; the others' numbers are null), --profile <file> (CPU profile
 * of the worker).
 */
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { createPool, type Pool } from "@rolldeck/db/connect";
import { startEmbeddedPostgres } from "@rolldeck/db/embedded-postgres";
import { migrate } from "@rolldeck/db/migrate";
import { createRun } from "@rolldeck/db/runs/create-run";
import { z } from "zod";
import { startProcess } from "../stack/started-process.ts";

type Progress = (line: string) => void;
interface Scene {
  readonly pool: Pool;
  readonly workerPid: number;
  readonly serverUrl: string;
  readonly rollouts: number;
  readonly progress: Progress;
}

const turns = 20;
/** What a turn adds: 41 sampled tokens, 50 observed, and the template's glue. */
const turnTokens = 94;
/** First prompts: so that the contexts grow to 2.6k, and so that they are of the named length halfway. */
const grownPrompt = 2600 - turns * turnTokens;
const prompts = { "2k": 2048, "8k": 8192, "32k": 32_768 } as const;
const promptFor = (tokens: number) => tokens - (turns / 2) * turnTokens;
/** Rollouts of one instance, as in training. */
const groupSize = 8;
const limitMs = 240_000;

export async function run(args: string[], progress: Progress) {
  const { values } = parseArgs({
    args,
    options: {
      rollouts: { type: "string", default: "512" },
      only: { type: "string", default: ["throughput", ...Object.keys(prompts)].join(",") },
      profile: { type: "string" },
    },
  });
  const rollouts = Number(values.rollouts);
  const folder = await mkdtemp(path.join(tmpdir(), "rolldeck-agent-"));
  // The account that runs Postgres must be able to enter it.
  await chmod(folder, 0o711);
  const stops: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const scene = await startScene(folder, { rollouts, profile: values.profile, stops, progress });
    return await measure(scene, values.only.split(","));
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function measure(scene: Scene, parts: readonly string[]) {
  const { workerPid, progress, rollouts } = scene;
  const idleKb = await residentKb(workerPid);
  const turnsPerS = parts.includes("throughput") ? await warmThroughput(scene) : null;
  const cpuMsPerTurn: Record<string, number | null> = {};
  let peakMemoryMB: number | null = null;
  for (const [name, tokens] of Object.entries(prompts)) {
    cpuMsPerTurn[name] = null;
    if (!parts.includes(name)) continue;
    // Forget the peak of what came before.
    await writeFile(`/proc/${workerPid}/clear_refs`, "5");
    cpuMsPerTurn[name] = await costAt(scene, promptFor(tokens));
    peakMemoryMB = Math.round(((await statusKb(workerPid, "VmHWM")) - idleKb) / 1024);
    progress(`${name}: ${cpuMsPerTurn[name]} ms a turn, at most ${peakMemoryMB} MB over idle`);
  }
  return { turnsPerS, cpuMsPerTurn, peakMemoryMB, rollouts };
}

async function warmThroughput(scene: Scene): Promise<number> {
  await throughput(scene);
  const turnsPerS = await throughput(scene);
  scene.progress(`${turnsPerS} turns a CPU second`);
  return turnsPerS;
}

/** Turns a CPU second over a whole run of evaluation rollouts. */
async function throughput(scene: Scene): Promise<number> {
  await order(scene, []);
  const before = await cpuSeconds(scene.workerPid);
  const runId = await launch(scene, grownPrompt);
  await untilCompleted(scene, runId);
  const spentS = (await cpuSeconds(scene.workerPid)) - before;
  scene.progress(`${scene.rollouts * turns} turns in ${spentS.toFixed(2)} CPU seconds`);
  return Math.round((scene.rollouts * turns) / spentS);
}

/** CPU milliseconds a turn while every rollout's context goes from its second to its last prompt. */
async function costAt(scene: Scene, promptCharacters: number): Promise<number> {
  const [first, last] = [1, turns - 1];
  await order(scene, [first, last]);
  const runId = await launch(scene, promptCharacters);
  await untilHeld(scene, first);
  const before = await cpuSeconds(scene.workerPid);
  await fetch(`${scene.serverUrl}/bench/release`, { method: "POST" });
  await untilHeld(scene, last);
  const spentS = (await cpuSeconds(scene.workerPid)) - before;
  await fetch(`${scene.serverUrl}/bench/release`, { method: "POST" });
  await untilCompleted(scene, runId);
  return Math.round((spentS * 1e6) / (scene.rollouts * (last - first))) / 1000;
}

async function startScene(
  folder: string,
  options: {
    readonly rollouts: number;
    readonly profile: string | undefined;
    readonly stops: (() => Promise<unknown>)[];
    readonly progress: Progress;
  },
): Promise<Scene> {
  const { stops, progress, rollouts, profile } = options;
  const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, "postgres") });
  stops.push(() => postgres.stop());
  await migrate(postgres.url);
  const pool = createPool(postgres.url, { max: 2, applicationName: "bench-agent" });
  stops.push(() => pool.end());
  const server = await startNamed("e2e/bench/agent/instant-server.ts", {}, (line) => line.startsWith("{"), options);
  const { url, apiKey } = z.object({ url: z.string(), apiKey: z.string() }).parse(JSON.parse(server.said));
  const env = {
    ROLLDECK_DATABASE_URL: postgres.url,
    ROLLDECK_GPU_WORKER_URL: url,
    ROLLDECK_GPU_WORKER_KEY: apiKey,
    ROLLDECK_LOG_LEVEL: "warn",
    ROLLDECK_WORKER_CONCURRENCY: String(Math.max(512, rollouts)),
    ROLLDECK_BENCH_PROMPTS: [grownPrompt, ...Object.values(prompts).map(promptFor)].join(","),
    ...(profile === undefined ? {} : { ROLLDECK_BENCH_PROFILE: path.resolve(profile) }),
  };
  const worker = await startNamed("e2e/bench/agent/bench-worker.ts", env, (line) => line === "worker started", options);
  progress("worker and server are up");
  return { pool, workerPid: worker.pid, serverUrl: url, rollouts, progress };
}

/** Resolves with the first line of the process that counts. */
async function startNamed(
  script: string,
  env: Readonly<Record<string, string>>,
  counts: (line: string) => boolean,
  { stops, progress }: { readonly stops: (() => Promise<unknown>)[]; readonly progress: Progress },
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

async function launch({ pool, rollouts }: Scene, promptCharacters: number): Promise<string> {
  const config: RunConfigInput = {
    kind: "evaluate",
    name: "agent bench",
    model: { name: "quickstart" },
    taskSets: [{ name: `echo-${promptCharacters}` }],
    agent: { maxTurns: 1000, maxContextTokens: 65_536, describeTools: false, sampling: { maxTokensPerTurn: 64 } },
    dispatcher: { name: "pipeline", bounds: { init: rollouts, run: rollouts, evaluate: rollouts } },
    evaluation: { samples: rollouts / groupSize, samplesPerInstance: groupSize },
  };
  return (await createRun(pool, { config: RunConfig.parse(config) })).runId;
}

const order = ({ serverUrl }: Scene, hold: readonly number[]) =>
  fetch(`${serverUrl}/bench`, { method: "POST", body: JSON.stringify({ turns, hold }) });

async function untilHeld(scene: Scene, turn: number): Promise<void> {
  await until(`turn ${turn} of all rollouts`, async () => {
    const held = z.record(z.string(), z.int()).parse(await (await fetch(`${scene.serverUrl}/bench`)).json());
    return held[String(turn)] === scene.rollouts;
  });
}

async function untilCompleted({ pool }: Scene, runId: string): Promise<void> {
  await until("the run's end", async () => {
    const { rows } = await pool.query("select status, reason from runs where id = $1", [runId]);
    const { status, reason } = rows[0] ?? {};
    if (status === "failed" || status === "stopped") throw new Error(`the run ended ${status}: ${reason}`);
    return status === "completed";
  });
}

async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  const endsAt = Date.now() + limitMs;
  while (!(await look())) {
    if (Date.now() > endsAt) throw new Error(`not within ${limitMs / 1000} s: ${what}`);
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
async function cpuSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8");
  // The name stands in brackets and may hold anything; utime and stime are the 14th and 15th fields.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const residentKb = (pid: number): Promise<number> => statusKb(pid, "VmRSS");

async function statusKb(pid: number, name: "VmRSS" | "VmHWM"): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(text)?.[1]);
}
