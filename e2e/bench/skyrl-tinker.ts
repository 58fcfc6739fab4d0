/**
 * `npm run bench -- skyrl-tinker`: the quickstart task on SkyRL's own Tinker server (JAX, CPU), and the same config on our GPU worker.
 * → {"runs":[{"seed","firstSuccess","lastSuccess","controlLast","steps","compileS","trainS","logprobGapMax"}]}
 *
 * Both begin with the same folder, which a warm start on our GPU worker made, and train an adapter of the same rank by the preset
 * `skyrl-tinker`. firstSuccess, lastSuccess: on 256 held-out episodes before the first step and after the last; controlLast: our worker's.
 * compileS: what SkyRL's log says its kernels took to compile during the run. trainS: first train step's start to the last one's end,
 * less evaluations and less compileS. logprobGapMax: largest |trainer − sampler| of a trained token, over all steps.
 * Flags: --quick (seed 1, 2 steps, 32 held-out episodes, no control), --seeds <list> (1,2), --warm-steps <n> (400), --steps <n> (the preset's),
 * --no-control (controlLast is null).
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { presets } from "@rolldeck/contracts/presets";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { prepareEnvironment } from "../fidelity/environment.ts";
import { type RealStack, startRealStack } from "../real/real-stack.ts";
import { type SkyrlServer, skyrlServer } from "../skyrl/testing/skyrl-server.ts";
import { measureRun } from "../stack/measured-run.ts";
import { makeWarmFolder } from "./compare/warm-folder.ts";

type Progress = (line: string) => void;
interface Settings {
  readonly warmSteps: number;
  readonly steps: number;
  /** Held-out episodes of an evaluation. */
  readonly samples: number;
  readonly control: boolean;
}

const root = path.resolve(import.meta.dirname, "../..");
const limitMs = 60 * 60_000;
const { config: preset } = presets["skyrl-tinker"];

export async function run(args: string[], progress: Progress): Promise<object> {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      seeds: { type: "string" },
      "warm-steps": { type: "string" },
      steps: { type: "string" },
      "no-control": { type: "boolean", default: false },
    },
  });
  const { quick } = values;
  const settings = {
    warmSteps: Number(values["warm-steps"] ?? 400),
    steps: Number(values.steps ?? (quick ? 2 : preset.budget.steps)),
    samples: quick ? 32 : preset.evaluation.samples,
    control: !quick && !values["no-control"],
  };
  process.env.ROLLDECK_SKYRL_PYTHON ??= await prepareEnvironment("skyrl", progress);
  const runs: object[] = [];
  for (const seed of (values.seeds ?? (quick ? "1" : "1,2")).split(",").map(Number))
    runs.push(await measure(seed, settings, progress));
  return { runs };
}

async function measure(seed: number, settings: Settings, progress: Progress) {
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-bench-skyrl-"));
  chmodSync(folder, 0o711);
  const model = path.join(folder, "models/quickstart");
  try {
    await makeWarmFolder(model, { seed, steps: settings.warmSteps, limitMs, progress });
    const server = await skyrlServer({
      folder,
      model,
      maxRank: preset.backend.lora.rank,
      microBatch: 1,
      sampleBatch: 128,
    });
    const endpoints = path.join(folder, "endpoints.json");
    writeFileSync(endpoints, JSON.stringify([{ name: preset.backend.server, kind: "tinker", urls: [server.url] }]));
    const env = {
      ROLLDECK_MODEL_ROOTS: `${path.dirname(model)}:${path.join(root, "infra/models")}`,
      ROLLDECK_ENDPOINTS: endpoints,
    };
    const stack = await startRealStack({ env });
    try {
      return await compare({ stack, server, log: path.join(folder, "server.log"), seed, settings, progress });
    } finally {
      await stack.stop();
      await server.kill();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compare(scene: {
  readonly stack: RealStack;
  readonly server: SkyrlServer;
  readonly log: string;
  readonly seed: number;
  readonly settings: Settings;
  readonly progress: Progress;
}) {
  const { stack, server, log, seed, settings, progress } = scene;
  const config: RunConfigInput = {
    ...preset,
    seed,
    evaluation: { samples: settings.samples },
    budget: { steps: settings.steps },
  };
  const options = (label: string) => ({ label: `${label} ${seed}`, limitMs, progress });
  await server.start();
  const measured = await measureRun(stack.rolldeck, config, options("skyrl"));
  const compileS = compileSeconds(readFileSync(log, "utf8"));
  await server.kill();
  const success = await measured.values("evaluate/success");
  const gaps = (await measured.values("policy/logprob-gap")).filter((gap) => gap !== null);
  const local = { ...config, backend: { name: "gpu-worker", lora: preset.backend.lora } };
  const control = settings.control ? await measureRun(stack.rolldeck, local, options("control")) : null;
  const result = {
    seed,
    firstSuccess: success[0] ?? null,
    lastSuccess: success.at(-1) ?? null,
    controlLast: (await control?.values("evaluate/success"))?.at(-1) ?? null,
    steps: measured.steps,
    compileS,
    trainS: measured.trainS - compileS,
    logprobGapMax: gaps.length === 0 ? null : Math.max(...gaps),
  };
  progress(JSON.stringify(result));
  return result;
}

/** The sum of what the server says of each kernel; its log breaks lines anywhere. */
const compileSeconds = (log: string): number =>
  [...log.replace(/\s+/g, " ").matchAll(/JIT compilation for \w+ seq_len=\d+ took ([\d.]+)s/g)].reduce(
    (sum, [, seconds]) => sum + Number(seconds),
    0,
  );
