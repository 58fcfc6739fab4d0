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
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
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

type Progress = (line: string) => void;
interface Bench extends Scene {
  readonly rollouts: number;
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
    const scene = await startScene(folder, {
      concurrency: Math.max(512, rollouts),
      prompts: [grownPrompt, ...Object.values(prompts).map(promptFor)],
      ...(values.profile === undefined ? {} : { env: { ROLLDECK_BENCH_PROFILE: path.resolve(values.profile) } }),
      stops,
      progress,
    });
    return await measure({ ...scene, rollouts }, values.only.split(","));
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function measure(bench: Bench, parts: readonly string[]) {
  const { workerPid, progress, rollouts } = bench;
  const idleKb = await statusKb(workerPid, "VmRSS");
  const turnsPerS = parts.includes("throughput") ? await warmThroughput(bench) : null;
  const cpuMsPerTurn: Record<string, number | null> = {};
  let peakMemoryMB: number | null = null;
  for (const [name, tokens] of Object.entries(prompts)) {
    cpuMsPerTurn[name] = null;
    if (!parts.includes(name)) continue;
    // Forget the peak of what came before.
    await writeFile(`/proc/${workerPid}/clear_refs`, "5");
    cpuMsPerTurn[name] = await costAt(bench, promptFor(tokens));
    peakMemoryMB = Math.round(((await statusKb(workerPid, "VmHWM")) - idleKb) / 1024);
    progress(`${name}: ${cpuMsPerTurn[name]} ms a turn, at most ${peakMemoryMB} MB over idle`);
  }
  return { turnsPerS, cpuMsPerTurn, peakMemoryMB, rollouts };
}

async function warmThroughput(bench: Bench): Promise<number> {
  await throughput(bench);
  const turnsPerS = await throughput(bench);
  bench.progress(`${turnsPerS} turns a CPU second`);
  return turnsPerS;
}

/** Turns a CPU second over a whole run of evaluation rollouts. */
async function throughput(bench: Bench): Promise<number> {
  await order(bench, { turns, hold: [] });
  const before = await cpuSeconds(bench.workerPid);
  const runId = await launchEcho(bench, grownPrompt);
  await untilCompleted(bench, runId);
  const spentS = (await cpuSeconds(bench.workerPid)) - before;
  bench.progress(`${bench.rollouts * turns} turns in ${spentS.toFixed(2)} CPU seconds`);
  return Math.round((bench.rollouts * turns) / spentS);
}

/** CPU milliseconds a turn while every rollout's context goes from its second to its last prompt. */
async function costAt(bench: Bench, promptCharacters: number): Promise<number> {
  const [first, last] = [1, turns - 1];
  await order(bench, { turns, hold: [first, last] });
  const runId = await launchEcho(bench, promptCharacters);
  await untilHeld(bench, first, bench.rollouts);
  const before = await cpuSeconds(bench.workerPid);
  await release(bench);
  await untilHeld(bench, last, bench.rollouts);
  const spentS = (await cpuSeconds(bench.workerPid)) - before;
  await release(bench);
  await untilCompleted(bench, runId);
  return Math.round((spentS * 1e6) / (bench.rollouts * (last - first))) / 1000;
}

const launchEcho = (bench: Bench, promptCharacters: number): Promise<string> =>
  launch(bench, { promptCharacters, groups: bench.rollouts / groupSize, groupSize, bound: bench.rollouts });
