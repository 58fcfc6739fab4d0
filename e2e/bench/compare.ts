/**
 * `npm run bench -- compare`: one config on several backends, launched as one comparison by one request.
 * → {"backends":[{"name","steps","success","logprobGap","meanAbsDiffVsLocal"}],"sameRows"}
 *
 * All begin with one warm-started folder and train the key chain by GRPO with clip and k3 in the loss. success: of the last step's
 * rollouts, recomputed from what is stored. logprobGap: largest |trainer − sampler| of a trained token, over all steps, as each
 * trainer computes it. meanAbsDiffVsLocal (and maxAbsDiffVsLocal): |Δlogprob| per trained token against `local`, when the same 64 stored
 * rollouts go through the backend's own forward pass at the weights that all begin with. sameRows: every backend answered for all of
 * them. A backend that the capability table refuses has 0 steps and the refused fields in `refused`.
 *
 * Ends with an error when a number of the comparison differs between page, API and recomputation, when a backend's log-probabilities
 * are further than 1e-4 from `local`'s, or when what must be refused is not.
 * Flags: --quick (20 warm, 3 steps), --warm-steps <n> (150), --steps <n> (10), --seed <n> (1).
 */
import { parseArgs } from "node:util";
import { ApiProblem } from "@rolldeck/client/api-problem";
import type { LaunchedComparison } from "@rolldeck/contracts/api/comparisons";
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { prepareEnvironment } from "../fidelity/environment.ts";
import { gpuWorkerKeyOf } from "../real/real-stack.ts";
import { firstDisagreement, pageDisagreement, recomputed, rowsOfRollouts } from "./compare/agreement.ts";
import { bridgedTrainers } from "./compare/bridged-trainers.ts";
import { type ComparedScene, startComparedScene, type TrainerEngine } from "./compare/compared-scene.ts";
import { covers, differences, type RowLogprobs, tinkerForward } from "./compare/forward-logprobs.ts";
import type { OutsideTrainer, TrainerSettings } from "./compare/outside-trainer.ts";
import { comparedConfig, groups, rank, refusedFields, samples, variants } from "./compare/variants.ts";

type Progress = (line: string) => void;
interface Settings {
  readonly seed: number;
  readonly steps: number;
  readonly progress: Progress;
}
interface Measured {
  readonly name: string;
  readonly steps: number;
  readonly success: number | null;
  readonly logprobGap: number | null;
  readonly refused?: readonly string[];
}

const rollouts = 64;
const tolerance = 1e-4;
const limitMs = 45 * 60_000;

export async function run(args: string[], progress: Progress): Promise<object> {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      "warm-steps": { type: "string" },
      steps: { type: "string" },
      seed: { type: "string", default: "1" },
    },
  });
  const seed = Number(values.seed);
  const steps = Number(values.steps ?? (values.quick ? 3 : 10));
  const warmSteps = Number(values["warm-steps"] ?? (values.quick ? 20 : 150));
  process.env.ROLLDECK_SKYRL_PYTHON ??= await prepareEnvironment("skyrl", progress);
  process.env.ROLLDECK_VERL_PYTHON ??= await prepareEnvironment("verl", progress);
  const scene = await startComparedScene({ seed, steps: warmSteps, limitMs, progress, rank });
  try {
    return await compare(scene, { seed, steps, progress });
  } finally {
    await scene.close();
  }
}

async function compare(scene: ComparedScene, settings: Settings): Promise<object> {
  const { progress } = settings;
  const { rolldeck } = scene.stack;
  const trainers = await Promise.all(
    bridgedTrainers.map(async (trainer) => {
      const engine = await scene.engine(trainer.name.replaceAll(" ", "-"));
      return { trainer, engine, settings: trainerSettings(scene, engine, settings.steps) };
    }),
  );
  const addresses = new Map(trainers.map(({ trainer, engine }) => [trainer.name, engine.server.url]));
  const refused = await expectRefused(scene, settings, addresses);
  progress(`SkyRL's Tinker server is refused: ${refused.join(", ")}`);
  const launched = await rolldeck.launchComparison({
    name: "backends",
    config: comparedConfig(settings),
    variants: variants(addresses),
  });
  progress(`comparison ${launched.comparisonId}`);
  const runOf = (label: string): string => runIdOf(launched, label);
  const reports = new Map<string, Awaited<ReturnType<OutsideTrainer["train"]>>>();
  for (const { trainer, settings: told } of trainers) {
    reports.set(trainer.name, await train(scene, trainer, told, runOf(trainer.name)));
    progress(`${trainer.name}: ${JSON.stringify(reports.get(trainer.name))}`);
  }
  const measured: Measured[] = [];
  for (const { label, runId } of launched.runs) {
    const status = await scene.stack.ended(runId, limitMs);
    if (status !== "completed") throw new Error(`${label} ended ${status}: ${(await rolldeck.getRun(runId)).reason}`);
    const told = reports.get(label)?.map(({ gap }) => gap);
    measured.push(await measure(scene, { label, runId }, told));
    progress(JSON.stringify(measured.at(-1)));
  }
  measured.push({ name: tinkerName, steps: 0, success: null, logprobGap: null, refused });
  await expectAgreement(scene, launched, measured);
  progress("page, API and recomputation agree");
  const rows = await rowsOfRollouts(rolldeck, runOf(localName), 1, rollouts);
  const answers = await allForwards(scene, rows, settings, trainers);
  return withDifferences(measured, rows, answers);
}

/** @throws with what became of the run, where the trainer failed */
async function train({ stack }: ComparedScene, trainer: OutsideTrainer, told: TrainerSettings, runId: string) {
  const { url, token } = stack;
  try {
    return await trainer.train(told, { url, token, runId });
  } catch (cause) {
    const { status, reason } = await stack.rolldeck.getRun(runId);
    throw new Error(`${trainer.name}: its run is ${status} (${reason ?? "no reason"})`, { cause });
  }
}

const localName = "local";
const tinkerName = "SkyRL Tinker server";

const runIdOf = ({ runs }: LaunchedComparison, label: string): string => {
  const found = runs.find((each) => each.label === label);
  if (found === undefined) throw new Error(`no variant ${label}`);
  return found.runId;
};

function trainerSettings(scene: ComparedScene, engine: TrainerEngine, steps: number): TrainerSettings {
  const { learningRate, beta2, clipLow, clipHigh, kl } = comparedConfig({ seed: 1, steps }).algorithm;
  const asked = { groups, samples, leaseS: 120, steps };
  const update = { learningRate, beta2, clipLow, clipHigh, klCoefficient: kl.coefficient };
  return { ...asked, ...update, base: scene.base, served: engine.served, engines: engine.server.url };
}

/** The same request with SkyRL's Tinker server in it writes nothing, and says why. @returns the fields */
async function expectRefused(
  { stack }: ComparedScene,
  settings: Settings,
  addresses: ReadonlyMap<string, string>,
): Promise<readonly string[]> {
  const change = {
    backend: { name: "tinker", dialect: "skyrl", server: "skyrl", lora: { rank } },
    checkpoints: { every: 1 },
  };
  const asked = [...variants(addresses), { label: tinkerName, change }];
  const request = { name: "backends", config: comparedConfig(settings), variants: asked };
  const problem = await stack.rolldeck.launchComparison(request).then(
    () => null,
    (error: unknown) => error,
  );
  const paths = problem instanceof ApiProblem ? (problem.problem.errors ?? []).map(({ path }) => path) : [];
  const expected = refusedFields.map((field) => `variants[${asked.length - 1}].${field}`);
  if (paths.toSorted().join() !== expected.toSorted().join())
    throw new Error(`expected a refusal of ${expected.join(", ")}, got ${problem ?? "a launch"}`);
  const { items } = await stack.rolldeck.listRuns({});
  if (items.length > 0) throw new Error("a refused comparison left runs");
  return refusedFields;
}

/** @param told what an outside trainer said of each step; undefined: the run's own metric says it */
async function measure(
  { stack: { rolldeck } }: ComparedScene,
  { label, runId }: { readonly label: string; readonly runId: string },
  told: readonly number[] | undefined,
): Promise<Measured> {
  const { step } = await rolldeck.getRun(runId);
  const { series } = await rolldeck.readMetrics({ runId, names: ["policy/logprob-gap"] });
  const gaps = told ?? series.flatMap(({ points }) => points.flatMap(({ value }) => value ?? []));
  const last = await recomputed(rolldeck, runId, step);
  return {
    name: label,
    steps: step,
    success: last["shared/success"] ?? null,
    logprobGap: gaps.length > 0 ? Math.max(...gaps) : null,
  };
}

async function expectAgreement(
  { stack }: ComparedScene,
  { comparisonId, runs }: LaunchedComparison,
  measured: readonly Measured[],
): Promise<void> {
  const detail = await stack.rolldeck.getComparison(comparisonId);
  for (const { label, runId } of runs) {
    const steps = measured.find(({ name }) => name === label)?.steps ?? 0;
    const outside = bridgedTrainers.some(({ name }) => name === label);
    const wrong = await firstDisagreement(stack.rolldeck, detail, { runId, steps, outside });
    if (wrong !== null) throw new Error(wrong);
  }
  const headers = { authorization: `Bearer ${stack.token}` };
  await stack.until("the pages answer", async () => (await fetch(`${stack.url}/runs`, { headers })).ok, 240_000);
  const { path } = await stack.rolldeck.createSignInCode();
  const wrong = await pageDisagreement(`${stack.url}${path}`, `${stack.url}/comparisons/${comparisonId}`, detail);
  if (wrong !== null) throw new Error(wrong);
}

/** By name, `local` first. */
async function allForwards(
  scene: ComparedScene,
  rows: readonly BatchRow[],
  { seed, progress }: Settings,
  trainers: readonly { readonly trainer: OutsideTrainer; readonly settings: TrainerSettings }[],
): Promise<ReadonlyMap<string, RowLogprobs>> {
  const url = String(await scene.stack.value("select url from gpu_workers where url is not null"));
  const own = { url, apiKey: gpuWorkerKeyOf(scene.stack.dataFolder), dialect: "rolldeck" } as const;
  const answers = new Map<string, RowLogprobs>();
  answers.set(localName, await tinkerForward(own, rows, { loraRank: 0, seed }));
  answers.set("local LoRA", await tinkerForward(own, rows, { loraRank: rank, seed }));
  for (const { trainer, settings } of trainers) answers.set(trainer.name, await trainer.forward(settings, rows));
  progress("forward: SkyRL's Tinker server compiles");
  await scene.skyrl.start();
  const skyrl = { url: scene.skyrl.url, apiKey: null, dialect: "skyrl" } as const;
  answers.set(tinkerName, await tinkerForward(skyrl, rows, { loraRank: rank, seed }));
  return answers;
}

function withDifferences(
  measured: readonly Measured[],
  rows: readonly BatchRow[],
  answers: ReadonlyMap<string, RowLogprobs>,
): object {
  const local = answers.get(localName) ?? [];
  const sameRows = measured.every(({ name }) => covers(rows, answers.get(name) ?? []));
  const backends = measured.map(({ name, refused, ...numbers }) => {
    const { mean, max } = differences(rows, answers.get(name) ?? [], local);
    if (!(max <= tolerance)) throw new Error(`${name}: a log-probability is ${max} from local's`);
    return { name, ...numbers, meanAbsDiffVsLocal: mean, maxAbsDiffVsLocal: max, ...(refused ? { refused } : {}) };
  });
  return { backends, sameRows, rollouts, tokens: differences(rows, local, local).tokens };
}
