/**
 * The two small tasks that train the agent's tools on the whole stack: memory carried over chunks, and two-hop search. One run a
 * seed. `first` and `last` are its evaluations on 256 held-out rows, before and after training and outside `trainS`; `toolOff` is an
 * evaluation run of the trained weights, exported and served again, with the task's option `toolOff`; `guess` is what the best
 * constant answer would get.
 *
 * `--only memory|search`, `--seeds 1,2,3`
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Preset } from "@rolldeck/contracts/preset";
import { presets } from "@rolldeck/contracts/presets";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { tasks } from "@rolldeck/tasks/registry";
import { z } from "zod";
import { root } from "../real/command-line.ts";
import { exportModel } from "../real/exported-model.ts";
import { gpuWorkerKeyOf, type RealStack, startRealStack } from "../real/real-stack.ts";
import { measureRun } from "../stack/measured-run.ts";

const benched = ["memory", "search"] as const;
type Benched = (typeof benched)[number];
type Progress = (line: string) => void;

interface SeedResult {
  readonly seed: number;
  readonly first: number;
  readonly last: number;
  readonly toolOff: number;
  readonly guess: number;
  readonly trainS: number;
}

const heldOutRows = 256;
const limitMs = 30 * 60_000;
const Flags = z.object({
  only: z.enum(benched).optional(),
  seeds: z
    .string()
    .default("1,2,3")
    .transform((list) => list.split(",").map(Number))
    .pipe(z.array(z.int().min(0)).min(1)),
});

export async function run(args: string[], progress: Progress): Promise<object> {
  const { values } = parseArgs({ args, options: { only: { type: "string" }, seeds: { type: "string" } } });
  const { only, seeds } = Flags.parse(values);
  const wanted = benched.filter((name) => only === undefined || name === only).map((name) => ({ name, ...plan(name) }));
  const models = mkdtempSync(path.join(tmpdir(), "rolldeck-bench-models-"));
  const roots = [path.join(root, "infra/models"), models].join(":");
  const stack = await startRealStack({ env: { ROLLDECK_MODEL_ROOTS: roots } });
  try {
    const results: Partial<Record<Benched, SeedResult[]>> = {};
    for (const { name, preset, task } of wanted) {
      const guess = bestConstant(await opened(task, preset));
      const ofTask: SeedResult[] = [];
      for (const seed of seeds) ofTask.push(await measureSeed({ stack, models, name, preset, progress }, seed, guess));
      results[name] = ofTask;
    }
    return results;
  } finally {
    await stack.stop();
    rmSync(models, { recursive: true, force: true });
  }
}

/** @throws when the preset or its task is missing, by name */
function plan(name: Benched): { readonly preset: Preset; readonly task: Task } {
  const preset = Object.entries<Preset>(presets).find(([key]) => key === name)?.[1];
  if (preset === undefined) throw new Error(`there is no preset "${name}"`);
  const taskName = preset.config.taskSets[0]?.name ?? "";
  const task = Object.entries<Task>(tasks).find(([key]) => key === taskName)?.[1];
  if (task === undefined) throw new Error(`preset "${name}" names task "${taskName}", which does not exist`);
  return { preset, task };
}

interface Scene {
  readonly stack: RealStack;
  /** Model root for what was trained. */
  readonly models: string;
  readonly name: Benched;
  readonly preset: Preset;
  readonly progress: Progress;
}

async function measureSeed(scene: Scene, seed: number, guess: number): Promise<SeedResult> {
  const { stack, name, preset, progress } = scene;
  const steps = preset.config.budget?.steps ?? 1;
  const trained = await measureRun(
    stack.rolldeck,
    {
      ...preset.config,
      name: `${name} ${seed}`,
      seed,
      evaluation: { ...preset.config.evaluation, samples: heldOutRows },
      // The newest checkpoint is what the last evaluation measured.
      checkpoints: { every: steps, keep: 1 },
    },
    { label: `${name}, seed ${seed}`, limitMs, progress },
  );
  const success = (await trained.values("evaluate/success")).map((value) => value ?? Number.NaN);
  const modelName = `${name}-${seed}`;
  await exportTrained(scene, trained.runId, modelName);
  const off = await measureRun(stack.rolldeck, toolOffConfig(preset.config, seed, modelName), {
    label: `${name}, seed ${seed}, tool off`,
    limitMs,
    progress,
  });
  const result = {
    seed,
    first: success[0] ?? Number.NaN,
    last: success.at(-1) ?? Number.NaN,
    toolOff: (await off.values("evaluate/success"))[0] ?? Number.NaN,
    guess,
    trainS: trained.trainS,
  };
  progress(JSON.stringify({ ...result, warmStartS: trained.warmStartS }));
  const missing = Object.entries(result).filter(([, value]) => Number.isNaN(value));
  if (missing.length > 0) throw new Error(`${name}, seed ${seed}: not measured: ${missing.map(([key]) => key)}`);
  return result;
}

function toolOffConfig(config: RunConfigInput, seed: number, modelName: string): RunConfigInput {
  return {
    ...config,
    kind: "evaluate",
    name: `${modelName} tool off`,
    seed,
    model: { ...config.model, name: modelName, warmStart: null },
    taskSets: config.taskSets.map((set) => ({ ...set, options: { ...set.options, toolOff: true } })),
    evaluation: { ...config.evaluation, samples: heldOutRows, every: 0 },
  };
}

/** The run's last weights become a model of their own. */
async function exportTrained({ stack, models }: Scene, runId: string, modelName: string): Promise<void> {
  const checkpoint = await stack.value(
    "select path from checkpoints where run_id = $1 and version = (select step from runs where id = $1)",
    [runId],
  );
  if (typeof checkpoint !== "string") throw new Error(`run ${runId} has no checkpoint of its last step`);
  const server = {
    url: String(await stack.value("select url from gpu_workers where url is not null")),
    apiKey: gpuWorkerKeyOf(stack.dataFolder),
  };
  await exportModel(server, checkpoint, path.join(models, modelName));
}

const guessedFrom = 20_000;
const Answers = z.object({ answers: z.array(z.string()).min(1) });

/** As the preset's run has it. */
async function opened(task: Task, preset: Preset): Promise<Task> {
  const { options } = RunConfig.parse(preset.config).taskSets[0] ?? {};
  return (await task.open?.({ dataset: null, options: options ?? {} })) ?? task;
}

/** Share of instances that the one best answer would solve. */
function bestConstant(task: Task): number {
  const counts = new Map<string, number>();
  for (let index = 0; index < guessedFrom; index++) {
    const { answers } = Answers.parse(task.instance("evaluate", index).state);
    for (const answer of new Set(answers)) counts.set(answer, (counts.get(answer) ?? 0) + 1);
  }
  return Math.max(...counts.values()) / guessedFrom;
}
