/** The official Tinker SDK and two recipes of its cookbook, their files unchanged, train LoRA adapters on our GPU worker. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { fidelityFolder } from "../fidelity/packages.ts";
import { readAdapter } from "./adapter.ts";
import { type Cookbook, startCookbook } from "./cookbook.ts";

const minute = 60_000;
let cookbook: Cookbook;

// The environment may have to be installed first.
beforeAll(async () => {
  cookbook = await startCookbook();
}, 8 * minute);
afterAll(() => cookbook?.stop());

const Refused = z.object({ status: z.int(), body: z.object({ detail: z.string(), field: z.string().nullable() }) });
const Numbers = z.array(z.number());
const Sequence = z.object({
  tokens: z.array(z.int()),
  logprobs: Numbers,
  stop: z.enum(["stop", "length"]),
  id: z.string(),
});
const Report = z.object({
  capabilities: z.array(z.string()),
  info: z.object({ is_lora: z.boolean(), lora_rank: z.int(), model_data: z.object({ tokenizer_id: z.string() }) }),
  otherModel: Refused,
  rank: Refused,
  losses: Numbers,
  each: z.record(z.string(), z.object({ loss: z.number(), gap: z.number(), raised: z.number() })),
  custom: z.object({ loss: z.number(), expectedLoss: z.number(), norm: z.number(), expectedNorm: z.number() }),
  samples: z.object({
    sequences: z.array(Sequence),
    greedy: z.object({ tokens: z.array(z.int()), logprobs: Numbers }),
    scored: z.array(z.number().nullable()),
    lastScored: z.array(z.number().nullable()),
    trained: Numbers,
    top: z.array(z.tuple([z.int(), z.number()])),
    topFirst: z.null(),
  }),
  stored: z.object({ tokens: z.array(z.int()), base: z.string() }),
  weightsInfo: z.record(z.string(), z.unknown()),
  run: z.object({ lora: z.boolean(), rank: z.int(), metadata: z.record(z.string(), z.string()) }),
  checkpoints: z.array(z.string()),
  notes: z.array(z.record(z.string(), z.string())),
  resumed: Numbers,
  left: z.array(z.string()),
});

/** Largest difference of two lists. */
const apart = (a: readonly number[], b: readonly number[]): number =>
  a.length === b.length ? Math.max(...a.map((value, at) => Math.abs(value - (b[at] ?? Number.NaN)))) : Number.NaN;

test("the SDK trains by each loss, samples, scores, saves and resumes", { timeout: 5 * minute }, async () => {
  const { modelFolder, worker, run } = cookbook;
  const script = path.join(fidelityFolder, "cookbook/sdk_calls.py");
  const output = await run([script, worker.url, modelFolder]);
  const line = /^RESULT (.*)$/m.exec(output)?.[1] ?? "";
  const said = Report.parse(JSON.parse(line));

  expect(said.capabilities).toContain(modelFolder);
  expect(said.info).toMatchObject({ is_lora: true, lora_rank: 4, model_data: { tokenizer_id: modelFolder } });
  expect(said.otherModel).toMatchObject({ status: 422, body: { field: "base_model" } });
  expect(said.otherModel.body.detail).toContain(modelFolder);
  expect(said.rank).toMatchObject({ status: 422, body: { field: "lora_config.rank" } });

  expect(said.losses.at(-1)).toBeLessThan(0.9 * (said.losses[0] ?? 0));
  for (const [loss, { gap, raised }] of Object.entries(said.each)) {
    expect(gap, loss).toBeLessThan(1e-5);
    expect(raised, loss).toBeGreaterThan(0);
  }
  expect(said.custom.loss).toBeCloseTo(said.custom.expectedLoss, 3);
  expect(said.custom.norm / said.custom.expectedNorm).toBeCloseTo(1, 4);

  const { sequences, greedy, scored, lastScored, trained } = said.samples;
  expect(sequences.map(({ tokens, logprobs }) => tokens.length - logprobs.length)).toEqual([0, 0, 0]);
  expect(new Set(sequences.map(({ id }) => id)).size).toBe(3);
  const numbers = scored.slice(1).map((value) => value ?? Number.NaN);
  expect(scored[0]).toBeNull();
  expect(apart(numbers.slice(-8), greedy.logprobs)).toBeLessThan(1e-4);
  // The sampler's merged weights and the trainer's adapter say the same of every token.
  expect(apart(numbers, trained)).toBeLessThan(1e-4);
  expect(lastScored.map((value) => value === null)).toEqual(scored.map((_, at) => at < scored.length - 8));
  expect(said.samples.top).toHaveLength(2);
  expect(said.stored).toEqual({ tokens: greedy.tokens, base: modelFolder });

  expect(said.weightsInfo).toMatchObject({ base_model: modelFolder, is_lora: true, lora_rank: 4, train_unembed: true });
  expect(said.run).toEqual({ lora: true, rank: 4, metadata: { renderer_name: "qwen3" } });
  expect(said.checkpoints).toEqual(["sampler_weights/kept", "weights/kept"]);
  expect(said.notes).toEqual([{ note: "mine" }]);
  expect(said.left).toEqual(["weights/kept"]);
  const [went, resumed, legacy, fresh] = said.resumed;
  expect(resumed).toBeCloseTo(went ?? Number.NaN, 4);
  expect(legacy).toBeCloseTo(went ?? Number.NaN, 4);
  expect(Math.abs((fresh ?? Number.NaN) - (went ?? Number.NaN))).toBeGreaterThan(1e-3);
});

const Metrics = z.record(z.string(), z.unknown());
const CheckpointLine = z.object({ name: z.string(), batch: z.int().optional(), state_path: z.string().optional() });

const linesOf = <T>(file: string, schema: z.ZodType<T>): T[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => schema.parse(JSON.parse(line)));

type Options = Readonly<Record<string, string>>;

/**
 * Runs a recipe for 3 steps, and then again from its last checkpoint.
 * @param more of the second call, which are to make it take 2 steps @returns the log's lines
 */
async function runTwice(module: string, options: Options, more: Options, log: string) {
  const common = {
    model_name: cookbook.modelFolder,
    base_url: cookbook.worker.url,
    log_path: log,
    lora_rank: "4",
    save_every: "2",
    max_steps: "3",
    behavior_if_log_dir_exists: "resume",
  };
  const call = (own: Options): Promise<string> => {
    const words = Object.entries({ ...common, ...own }).map(([key, value]) => `${key}=${value}`);
    return cookbook.run(["-m", module, ...words]);
  };
  await call(options);
  const first = linesOf(path.join(log, "checkpoints.jsonl"), CheckpointLine);
  const metricsOfFirst = linesOf(path.join(log, "metrics.jsonl"), Metrics).length;
  const output = await call({ ...options, ...more });
  return {
    first,
    metricsOfFirst,
    all: linesOf(path.join(log, "checkpoints.jsonl"), CheckpointLine),
    metrics: linesOf(path.join(log, "metrics.jsonl"), Metrics),
    output,
  };
}

/** B of an adapter starts at zero: where it is not, it was trained. */
async function expectTrained(statePath: string | undefined): Promise<Float32Array[]> {
  const { config, tensors } = await readAdapter(cookbook.worker, statePath ?? "");
  expect(config.r).toBe(4);
  const trained = [...tensors].filter(([name]) => name.includes("lora_B")).map(([, values]) => values);
  expect(trained.length).toBeGreaterThan(10);
  expect(trained.every((values) => values.some((value) => value !== 0))).toBe(true);
  return trained;
}

async function expectResumed(run: Awaited<ReturnType<typeof runTwice>>): Promise<void> {
  const before = await expectTrained(run.first.at(-1)?.state_path);
  const after = await expectTrained(run.all.at(-1)?.state_path);
  expect(after).not.toEqual(before);
  expect(run.output).toContain(`Resumed training from ${run.first.at(-1)?.state_path}`);
  expect(run.metrics.length).toBeGreaterThan(run.metricsOfFirst);
}

const numbersOf = (metrics: readonly Record<string, unknown>[], name: RegExp): number[] =>
  metrics.flatMap((line) =>
    Object.entries(line).flatMap(([key, value]) => (name.test(key) && typeof value === "number" ? [value] : [])),
  );

test("chat_sl of the cookbook trains, saves and resumes", { timeout: 6 * minute }, async () => {
  const dataset = path.join(cookbook.folder, "chats.jsonl");
  const chat = (at: number) => ({
    messages: [
      { role: "user", content: `What comes after ${at}?` },
      { role: "assistant", content: `${at + 1} comes after it.` },
    ],
  });
  writeFileSync(dataset, Array.from({ length: 24 }, (_, at) => `${JSON.stringify(chat(at))}\n`).join(""));
  const options = { dataset, renderer_name: "qwen3", batch_size: "4", max_length: "512", learning_rate: "1e-2" };
  // Its last checkpoint of a call says that the epoch is over, 6 batches of which 3 were taken.
  const more = { num_epochs: "2", max_steps: "8" };
  const log = path.join(cookbook.folder, "chat_sl");
  const run = await runTwice("tinker_cookbook.recipes.chat_sl.train", options, more, log);
  const losses = numbersOf(run.metrics, /^train_mean_nll$/);
  expect(losses).toHaveLength(5);
  expect(losses.every(Number.isFinite)).toBe(true);
  expect(losses.at(-1)).toBeLessThan(losses[0] ?? 0);
  await expectResumed(run);
});

test("math_rl of the cookbook trains, saves and resumes", { timeout: 6 * minute }, async () => {
  const options = {
    env: "arithmetic",
    renderer_name: "qwen3",
    group_size: "8",
    groups_per_batch: "4",
    max_tokens: "64",
    eval_every: "0",
    learning_rate: "1e-3",
  };
  const log = path.join(cookbook.folder, "math_rl");
  const run = await runTwice("tinker_cookbook.recipes.math_rl.train", options, { max_steps: "5" }, log);
  const losses = numbersOf(run.metrics, /loss/);
  expect(losses.length).toBeGreaterThanOrEqual(5);
  expect(losses.every(Number.isFinite)).toBe(true);
  // What was sampled is what is trained.
  const gaps = numbersOf(run.metrics, /^optim\/kl_sample_train_v1$/);
  expect(gaps.length).toBeGreaterThanOrEqual(5);
  expect(Math.max(...gaps.map(Math.abs))).toBeLessThan(1e-4);
  await expectResumed(run);
});
