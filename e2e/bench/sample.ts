/**
 * `npm run bench -- sample`: 64 rollouts of 6 turns, sampled by our GPU worker over HTTP and by `transformers`.
 * → {"models":[{"params","tokensPerS","sequentialTokensPerS","staticBatchTokensPerS","speedup","speedupStatic"}]}
 *
 * Sampled tokens a second, greedy, float32 on one thread each, medians of three interleaved rounds. A turn ends at a limit of its own
 * (8 to 48 tokens), as turns of agents differ in length; what follows it is 17 tokens of observation. sequential: `generate`, one
 * rollout after the other. staticBatch: `generate` over a turn of all rollouts, padded left, until the longest one is done. speedup =
 * ours ÷ sequential, speedupStatic = ours ÷ staticBatch. The three sample equal tokens, or there is no result.
 * Flags: --quick (one round, 8 rollouts of 3 turns), --models <list> (quickstart,5m), --seed <n> (6).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { z } from "zod";
import { startGpuWorker } from "../stack/started-gpu-worker.ts";
import { askPython, testPython } from "./ask-python.ts";
import { makePolicies, type Policy } from "./policies.ts";
import { median } from "./quantile.ts";
import { type PlannedRollout, planRollouts } from "./sample/planned-rollouts.ts";
import { play, requireEqual, tokensPerS } from "./sample/play.ts";

type Progress = (line: string) => void;
interface Settings {
  readonly python: string;
  readonly rounds: number;
  readonly rollouts: readonly PlannedRollout[];
}
/** Sampled tokens a second of one round. */
interface Speeds {
  readonly ours: number;
  readonly sequential: number;
  readonly staticBatch: number;
}

const Played = z.object({ seconds: z.number().positive(), outputs: z.array(z.array(z.array(z.int()))) });
const Theirs = z.object({ sequential: Played, staticBatch: Played });

export async function run(args: string[], progress: Progress): Promise<object> {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      models: { type: "string", default: "quickstart,5m" },
      seed: { type: "string", default: "6" },
    },
  });
  const python = await testPython(progress);
  const [count, turns, rounds] = values.quick ? [8, 3, 1] : [64, 6, 3];
  const settings = { python, rounds, rollouts: planRollouts(Number(values.seed), count, turns) };
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-bench-sample-"));
  try {
    const models: object[] = [];
    for (const policy of await makePolicies(python, path.join(folder, "models"), values.models))
      models.push(await measure(policy, settings, progress));
    return { models };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(policy: Policy, settings: Settings, progress: Progress): Promise<object> {
  const { python, rounds, rollouts } = settings;
  const worker = await startGpuWorker({ flags: ["--model", `policy=${policy.folder}`], progress });
  const backend = connectTinker({ url: worker.url, apiKey: worker.apiKey, dialect: "rolldeck" });
  try {
    const model = await backend.createModel({ baseModel: "policy", seed: 1, fence: { runId: "sample", token: 1 } });
    /** Of weights that no prefix is cached of. */
    const freshSampler = async (seqId: number) => backend.sampler(await model.saveWeightsForSampler(seqId));
    // What is done once, first: connections, rotary tables.
    await play(await freshSampler(1), planRollouts(0, 1, 1));
    const speeds: Speeds[] = [];
    for (let round = 1; round <= rounds; round++) {
      const ours = await play(await freshSampler(round + 1), rollouts);
      const input = { folder: policy.folder, rollouts };
      const theirs = await askPython({ python, script: "sample/transformers_sampling.py", input, answer: Theirs });
      requireEqual(ours, theirs.sequential, "one by one");
      requireEqual(ours, theirs.staticBatch, "in a static batch");
      speeds.push({
        ours: tokensPerS(ours),
        sequential: tokensPerS(theirs.sequential),
        staticBatch: tokensPerS(theirs.staticBatch),
      });
      progress(`${policy.name}, round ${round}, tokens/s: ${JSON.stringify(speeds.at(-1))}`);
    }
    return summary(policy.params, speeds);
  } finally {
    await backend.close();
    await worker.stop();
  }
}

function summary(params: number, speeds: readonly Speeds[]): object {
  const ours = median(speeds.map((round) => round.ours));
  const sequential = median(speeds.map((round) => round.sequential));
  const staticBatch = median(speeds.map((round) => round.staticBatch));
  return {
    params,
    tokensPerS: Math.round(ours),
    sequentialTokensPerS: Math.round(sequential),
    staticBatchTokensPerS: Math.round(staticBatch),
    speedup: Math.round((100 * ours) / sequential) / 100,
    speedupStatic: Math.round((100 * ours) / staticBatch) / 100,
  };
}
