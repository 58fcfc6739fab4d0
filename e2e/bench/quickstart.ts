/**
 * The quickstart run on the whole stack, one run a seed. Success before and after is measured by the run's evaluation steps on
 * held-out episodes (never trained on), outside `trainS`.
 */
import path from "node:path";
import { presets } from "@rolldeck/contracts/presets";
import { measureRun } from "../stack/measured-run.ts";
import { type StartedStack, startStack } from "../stack/started-stack.ts";

interface SeedResult {
  readonly seed: number;
  readonly firstSuccess: number | null;
  readonly lastSuccess: number | null;
  readonly steps: number;
  readonly warmStartS: number;
  /** Start of the first train step to the end of the last, less the evaluations between them. */
  readonly trainS: number;
  readonly tokensPerS: number;
  readonly logprobGapMax: number | null;
}

async function measure(stack: StartedStack, seed: number, progress: (line: string) => void): Promise<SeedResult> {
  const measured = await measureRun(
    stack.rolldeck,
    { ...presets.quickstart.config, seed, name: `quickstart ${seed}` },
    { label: `seed ${seed}`, limitMs: 20 * 60_000, progress },
  );
  const success = await measured.values("evaluate/success");
  const gaps = (await measured.values("policy/logprob-gap")).filter((gap) => gap !== null);
  const speeds = (await measured.values("throughput/tokens-per-second")).filter((speed) => speed !== null);
  const result: SeedResult = {
    seed,
    firstSuccess: success[0] ?? null,
    lastSuccess: success.at(-1) ?? null,
    steps: measured.steps,
    warmStartS: measured.warmStartS,
    trainS: measured.trainS,
    tokensPerS: speeds.reduce((sum, speed) => sum + speed, 0) / Math.max(1, speeds.length),
    logprobGapMax: gaps.length === 0 ? null : Math.max(...gaps),
  };
  progress(JSON.stringify(result));
  return result;
}

export async function run(args: string[], progress: (line: string) => void): Promise<object> {
  const flag = args.find((arg) => arg.startsWith("--seeds="))?.slice("--seeds=".length) ?? "1,2,3";
  const stack = await startStack({
    root: path.resolve(import.meta.dirname, "../.."),
    args: ["--no-demo", "--only", "api,worker,gpu-worker"],
    onLine: progress,
  });
  try {
    const runs: SeedResult[] = [];
    for (const seed of flag.split(",").map(Number)) runs.push(await measure(stack, seed, progress));
    return { runs };
  } finally {
    await stack.stop();
  }
}
