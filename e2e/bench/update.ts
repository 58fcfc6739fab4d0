/**
 * `npm run bench -- update`: one update of 128 rows of log-normal lengths (median 200, σ 1), by our GPU worker's trainer and by others.
 * → {"models":[{"params","packedTokensPerS","paddedTokensPerS","paddedUnsortedTokensPerS","trlTokensPerS","speedup","speedupTrl",
 *   "gradMaxDiff"}]}
 *
 * Trained tokens a second, float32 on one thread each, medians of three interleaved rounds. packed: our trainer. padded: `transformers`
 * and PyTorch's AdamW, eight rows a batch, of similar lengths; paddedUnsorted: as the rows came. trl: `GRPOTrainer`'s loss over the
 * unsorted ones. speedup = packed ÷ paddedUnsorted, speedupTrl = packed ÷ trl. gradMaxDiff: largest difference of any entry of the
 * gradient between packed and padded, token-mean loss.
 * Flags: --quick (one round, 32 rows to 512 tokens), --models <list> (quickstart,5m), --seed <n> (6), --no-trl (trlTokensPerS and
 * speedupTrl are null; TRL's environment is not needed).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { prepareEnvironment } from "../fidelity/environment.ts";
import { askPython, testPython } from "./ask-python.ts";
import { makePolicies, type Policy } from "./policies.ts";
import { median } from "./quantile.ts";

type Progress = (line: string) => void;
interface Settings {
  readonly python: string;
  readonly trlPython: string | null;
  readonly rounds: number;
  readonly shape: { readonly seed: number; readonly rows: number; readonly cap: number; readonly batch: number };
}

const Measured = z.object({
  trained: z.int().positive(),
  packedS: z.number().positive(),
  paddedS: z.number().positive(),
  unsortedS: z.number().positive(),
  gradMaxDiff: z.number().nullable(),
});
const TrlMeasured = z.object({ seconds: z.number().positive() });
type Round = z.infer<typeof Measured> & { readonly trlS: number | null };

export async function run(args: string[], progress: Progress): Promise<object> {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      models: { type: "string", default: "quickstart,5m" },
      seed: { type: "string", default: "6" },
      "no-trl": { type: "boolean", default: false },
    },
  });
  const seed = Number(values.seed);
  const settings: Settings = {
    python: await testPython(progress),
    trlPython: values["no-trl"] ? null : await prepareEnvironment("trl", progress),
    rounds: values.quick ? 1 : 3,
    shape: values.quick ? { seed, rows: 32, cap: 512, batch: 8 } : { seed, rows: 128, cap: 2_048, batch: 8 },
  };
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-bench-update-"));
  try {
    const models: object[] = [];
    for (const policy of await makePolicies(settings.python, path.join(folder, "models"), values.models))
      models.push(await measure(policy, settings, progress));
    return { models };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(policy: Policy, settings: Settings, progress: Progress): Promise<object> {
  const rounds: Round[] = [];
  for (let round = 0; round < settings.rounds; round++) {
    rounds.push(await measureRound(policy, settings, round === 0));
    progress(`${policy.name}, round ${round + 1}: ${JSON.stringify(rounds.at(-1))}`);
  }
  const tokensPerS = (pick: (round: Round) => number | null): number | null => {
    const speeds = rounds.flatMap((round) => {
      const seconds = pick(round);
      return seconds === null ? [] : [round.trained / seconds];
    });
    return speeds.length === 0 ? null : Math.round(median(speeds) * 10) / 10;
  };
  const packed = tokensPerS((round) => round.packedS);
  const unsorted = tokensPerS((round) => round.unsortedS);
  const trl = tokensPerS((round) => round.trlS);
  return {
    params: policy.params,
    packedTokensPerS: packed,
    paddedTokensPerS: tokensPerS((round) => round.paddedS),
    paddedUnsortedTokensPerS: unsorted,
    trlTokensPerS: trl,
    speedup: ratio(packed, unsorted),
    speedupTrl: ratio(packed, trl),
    gradMaxDiff: rounds[0]?.gradMaxDiff ?? null,
  };
}

async function measureRound(policy: Policy, settings: Settings, gradients: boolean): Promise<Round> {
  const { python, trlPython, shape } = settings;
  const input = { folder: policy.folder, ...shape };
  const script = "update/measure_update.py";
  const measured = await askPython({ python, script, input: { ...input, gradients }, answer: Measured });
  if (trlPython === null) return { ...measured, trlS: null };
  const trl = await askPython({ python: trlPython, script: "update/trl_update.py", input, answer: TrlMeasured });
  return { ...measured, trlS: trl.seconds };
}

const ratio = (ours: number | null, theirs: number | null): number | null =>
  ours === null || theirs === null ? null : Math.round((100 * ours) / theirs) / 100;
