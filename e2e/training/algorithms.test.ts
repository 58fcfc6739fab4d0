/**
 * The algorithm's settings on the live engine: what a run asks for is in its rows, the trainer is told of it, and the stored
 * rows alone bring a second model to the same weights.
 */
import { copyFileSync, cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { readTrainingRows, type StepRows, type StoredTrainingRow } from "@rolldeck/db/training/training-rows";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { forwardBackwardRows, stepModel } from "../../apps/worker/src/training/apply-rows.ts";
import { exportModel, largestDifference, readTensors } from "../real/exported-model.ts";
import { gpuWorkerKeyOf, type RealStack, startRealStack } from "../real/real-stack.ts";
import { learningConfig } from "../real/tiny-run.ts";

const steps = 2;

let stack: RealStack;
let folder: string;
/** A model root of this file's. */
let models: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-algorithms-"));
  models = path.join(folder, "models");
  const bundled = path.resolve(import.meta.dirname, "../../infra/models");
  cpSync(path.join(bundled, "quickstart"), path.join(models, "learnt"), { recursive: true });
  stack = await startRealStack({ env: { ROLLDECK_MODEL_ROOTS: `${bundled}:${models}` } });
});
afterAll(async () => {
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const learning = (algorithm: RunConfigInput["algorithm"]): RunConfig =>
  learningConfig(steps, { groupsPerStep: 12, ...algorithm });

async function finishedRows(config: RunConfig): Promise<{ runId: string; rows: StepRows[] }> {
  const { runId } = await stack.rolldeck.launchRun(config);
  const status = await stack.ended(runId, 240_000);
  expect(
    status,
    String(await stack.value("select string_agg(reason, '; ') from steps where run_id = $1", [runId])),
  ).toBe("completed");
  const rows = await readTrainingRows(stack.pool, runId, 1, steps);
  expect(rows.map(({ step }) => step)).toEqual([1, 2]);
  return { runId, rows };
}

async function workerServer(): Promise<{ url: string; apiKey: string }> {
  const url = String(await stack.value("select url from gpu_workers where url is not null"));
  return { url, apiKey: gpuWorkerKeyOf(stack.dataFolder) };
}

const pathOf = async (runId: string, version: number): Promise<string> =>
  z
    .string()
    .parse(await stack.value("select path from checkpoints where run_id = $1 and version = $2", [runId, version]));

/** Of a version of the run, an adapter merged into what it adapts. */
const weightsOf = async (runId: string, version: number) =>
  readTensors(
    await exportModel(await workerServer(), await pathOf(runId, version), path.join(folder, `${runId}-${version}`)),
  );

/** The same stored rows on a model that the run never saw. @returns largest difference of a weight */
async function differenceAfter(runId: string, config: RunConfig, rows: readonly StepRows[]): Promise<number> {
  const server = await workerServer();
  const backend = connectTinker({ ...server, dialect: "rolldeck" });
  const fence = { runId: `again-${runId}`, token: 1 };
  const loraRank = config.backend.lora?.rank ?? 0;
  const model = await backend.createModel({ baseModel: config.model.name, seed: config.seed, loraRank, fence });
  let seqId = 0;
  const nextSeq = async (): Promise<number> => ++seqId;
  // A model that had no warm start is that of its seed.
  if (config.model.warmStart !== null)
    await model.loadWeights(await pathOf(runId, 0), { optimizer: false, seqId: await nextSeq() });
  for (const [at, step] of rows.entries()) {
    await forwardBackwardRows(model, step.rows, config, nextSeq);
    await stepModel(model, step.rows, config, { step: at + 1, seqId: await nextSeq(), expectStep: at });
  }
  const again = await model.saveWeights("again", await nextSeq());
  const ours = await weightsOf(runId, steps);
  const others = readTensors(await exportModel(server, again.path, path.join(folder, `${runId}-again`)));
  await backend.close();
  return largestDifference(ours, others);
}

const sentRows = (step: StepRows | undefined): StoredTrainingRow[] => (step?.rows ?? []).filter(({ sent }) => sent);
/** Largest |trainer − reference| over the trained tokens. */
const drift = (rows: readonly StoredTrainingRow[]): number =>
  Math.max(
    ...rows.flatMap(({ correction, refLogprobs, logprobs }) =>
      logprobs.map((logprob, t) =>
        logprob === null ? 0 : Math.abs((correction?.trainerLogprobs[t] ?? 0) - (refLogprobs?.[t] ?? 0)),
      ),
    ),
  );
const points = async (runId: string, metric: string): Promise<number[]> => {
  const { rows } = await stack.pool.query(
    "select value from metric_points where run_id = $1 and name = $2 order by step",
    [runId, metric],
  );
  return rows.map((row) => z.number().parse(row.value));
};

test("importance weights, a KL term and an entropy bonus: stored with the rows, told to the trainer, repeatable", async () => {
  const config = learning({
    advantage: "reinforce++",
    loss: "gspo",
    learningRate: 3e-4,
    normalisation: "prompt-mean",
    kl: { coefficient: 0.05, placement: "loss", estimator: "k3" },
    entropyCoefficient: 0.01,
    offPolicy: { weight: "token", sequenceMask: "product", stalenessDecay: 0.9 },
  });
  const { runId, rows } = await finishedRows(config);
  for (const step of rows) {
    const sent = sentRows(step);
    // REINFORCE++ compares within the batch: groups without spread teach too.
    expect(sent.length, `step ${step.step}`).toBe(step.rows.length);
    for (const { correction, refLogprobs, tokens } of sent) {
      expect(correction?.tokenWeights.length).toBe(tokens.length);
      expect(refLogprobs?.length).toBe(tokens.length);
      // The engine and the trainer agree, and nothing is old: weights are those of rounding.
      for (const weight of correction?.tokenWeights ?? []) if (weight !== 0) expect(weight).toBeCloseTo(1, 3);
    }
  }
  // Before the first update the policy is its own reference.
  expect(drift(sentRows(rows[0]))).toBeLessThan(1e-4);
  expect(drift(sentRows(rows[1]))).toBeGreaterThan(1e-3);
  const [first = Number.NaN, second = Number.NaN] = await points(runId, "policy/kl");
  expect(first).toBeCloseTo(0, 6);
  expect(second).toBeGreaterThan(1e-6);
  expect(await points(runId, "policy/left-out")).toEqual([0, 0]);
  expect(await differenceAfter(runId, config, rows)).toBeLessThanOrEqual(1e-6);
});

test("KL in the reward moves advantages of the second step only; tokens beyond the bounds say so", async () => {
  const config = learning({
    advantage: "maxrl",
    loss: "cispo",
    batchNormalise: true,
    kl: { coefficient: 0.5, placement: "reward", estimator: "k1" },
    // Rounding alone puts about half of the ratios below 1.
    offPolicy: { tokenLow: 1 },
  });
  const { runId, rows } = await finishedRows(config);
  const reasons = sentRows(rows[0]).flatMap(({ correction }) => correction?.mask.map(({ reason }) => reason) ?? []);
  expect(reasons).toContain("off-policy");
  expect(reasons).toContain(null);
  const [share = 0] = await points(runId, "policy/left-out");
  expect(share).toBeGreaterThan(0.05);
  expect(share).toBeLessThan(0.95);
  // What the inspector shows of a token is what happened to it.
  const [row] = sentRows(rows[0]).filter(({ correction }) =>
    correction?.mask.some((run) => run.reason === "off-policy"),
  );
  const page = await stack.rolldeck.readTokens({ rolloutId: row?.rolloutId ?? "", attempt: row?.attempt ?? 1 });
  expect(page.maskReasons).toContain("off-policy");
  // In the second step rollouts of equal rewards have paid differently.
  const spread = new Map<string, Set<number>>();
  const { rows: groups } = await stack.pool.query(
    `select t.rollout_id, r.group_id || ':' || r.reward as kind, t.advantage from training_rows t
     join rollouts r on r.id = t.rollout_id join steps s on s.id = t.step_id where t.run_id = $1 and s.step = 2 and t.sent`,
    [runId],
  );
  for (const { kind, advantage } of groups) spread.set(kind, (spread.get(kind) ?? new Set()).add(advantage));
  expect(Math.max(...[...spread.values()].map((values) => values.size))).toBeGreaterThan(1);
  expect(await differenceAfter(runId, config, rows)).toBeLessThanOrEqual(1e-6);
});

test("an adapter is trained beside frozen weights, and made again from its rows", async () => {
  // What the first test began with, served as a base of its own.
  const run = z.string().parse(await stack.value("select id from runs order by created_at limit 1", []));
  const learnt = await exportModel(await workerServer(), await pathOf(run, 0), path.join(folder, "learnt"));
  copyFileSync(path.join(learnt, "model.safetensors"), path.join(models, "learnt/model.safetensors"));
  const config = RunConfig.parse({
    ...learning({ advantage: "reinforce++", learningRate: 1e-2 }),
    model: { name: "learnt" },
    backend: { name: "gpu-worker", lora: { rank: 4 } },
    checkpoints: { every: 1, keep: 3 },
  });
  const { runId, rows } = await finishedRows(config);
  expect(sentRows(rows[0]).length).toBeGreaterThan(0);
  const [first, last] = [readTensors(learnt), await weightsOf(runId, steps)];
  const moved = [...first.keys()].filter((name) => largestDifference(only(first, name), only(last, name)) > 1e-6);
  expect(moved.length).toBeGreaterThan(0);
  // Norms are no part of an adapter.
  expect(moved.filter((name) => name.includes("norm"))).toEqual([]);
  expect(await differenceAfter(runId, config, rows)).toBeLessThanOrEqual(1e-6);
});

/** One tensor of them. */
const only = (tensors: ReadonlyMap<string, Float32Array>, name: string): Map<string, Float32Array> =>
  new Map([...tensors].filter(([key]) => key === name));
