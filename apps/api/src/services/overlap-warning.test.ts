/** Asking for overlap of a backend that has none: accepted, with what the simulator says of it. */
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { createTestDatabase, type TestDatabase } from "@rolldeck/db/testing/postgres";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { seedSchedule } from "@rolldeck/db/testing/seed-schedule";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OverlapEstimates } from "../simulation/overlap-estimates.ts";
import type { OverlapTask } from "../simulation/thread-message.ts";
import { createCatalogue } from "./catalogue.ts";
import { checkConfig } from "./check-config.ts";
import { overlapWarning, withOverlapWarning } from "./overlap-warning.ts";

describe("the warning", () => {
  const estimate = {
    basis: "recorded" as const,
    rollouts: 512,
    asyncMs: 41_200,
    pipelineMs: 47_000,
    change: { mean: -0.123, low: -0.15, high: -0.1 },
  };
  test.each([
    [
      "gains",
      estimate,
      /async is about 12 % faster than pipeline, predicted 41 s per step against 47 s, simulated over 512 rollouts of run r1$/,
      null,
    ],
    [
      "loses",
      { ...estimate, asyncMs: 9_870, pipelineMs: 9_400, change: { mean: 0.05, low: 0, high: 0.1 } },
      /about 5 % slower than pipeline, predicted 9\.9 s per step against 9\.4 s/,
      "use pipeline",
    ],
    [
      "changes nothing",
      { ...estimate, change: { mean: 0.001, low: 0, high: 0.1 } },
      /async is as fast as pipeline/,
      "use pipeline",
    ],
    ["was not simulated", null, /could not be simulated in time/, expect.stringMatching(/rolldeck simulate/)],
  ])("says when async %s", (_, given, message, fix) => {
    expect(overlapWarning(given, "r1")).toEqual({
      path: "dispatcher.name",
      message: expect.stringMatching(message),
      fix,
    });
  });
});

describe("a check", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  const config = (change: Partial<RunConfigInput> = {}): RunConfigInput => ({
    name: "overlapping",
    model: { name: "quickstart" },
    taskSets: [{ name: "key-chain" }],
    dispatcher: { name: "async", maxStaleness: 1 },
    algorithm: { groupsPerStep: 4, groupSize: 2 },
    ...change,
  });
  const check = async (input: RunConfigInput, limitMs = 100_000) => {
    const models = new URL("../../../../infra/models", import.meta.url).pathname;
    const catalogue = await createCatalogue({ models: [models], templates: [] }).forCheck();
    const estimates = new OverlapEstimates(limitMs);
    const factsOf = () => ({ sandbox: "none" as const, gradeInPlace: false });
    return withOverlapWarning(checkConfig(input, catalogue), { pool: database.pool, estimates, factsOf });
  };

  test("accepts async on one device, with the simulator's estimate", async () => {
    const told = await check(config());
    expect(told).toMatchObject({ ok: true, issues: [] });
    expect(told.warnings).toEqual([
      {
        path: "dispatcher.name",
        message: expect.stringMatching(
          /^this backend trains and samples on the same device.*async is (about \d+ % (faster|slower) than|as fast as) pipeline, predicted [\d.]+ s per step against [\d.]+ s, simulated over assumed times/,
        ),
        fix: expect.toSatisfy((fix) => fix === null || fix === "use pipeline"),
      },
    ]);
  });
  test("goes by a run like it, where one was recorded", async () => {
    const { pool } = database;
    const runId = await seedRun(pool, { config: { ...config({ dispatcher: { name: "pipeline" } }), name: "before" } });
    await seedSchedule(pool, runId, { step: 1, groups: 4, groupSize: 2, bounds: { init: 8, run: 8, evaluate: 8 } });
    await seedRun(pool, { config: { ...config(), model: { name: "another" } } });
    const [warning] = (await check(config({ name: "after" }))).warnings;
    expect(warning?.message).toMatch(new RegExp(`simulated over \\d+ rollouts of run ${runId}$`));
  });
  test("warns without an estimate that takes too long", async () => {
    const [warning] = (await check(config(), 0)).warnings;
    expect(warning).toEqual(overlapWarning(null, null));
  });
  test("says nothing where nothing overlaps", async () => {
    expect((await check(config({ dispatcher: { name: "pipeline" } }))).warnings).toEqual([]);
    const evaluation = { kind: "evaluate", evaluation: { samples: 4 } } as const;
    expect((await check(config(evaluation))).warnings).toEqual([]);
  });
});

test("one estimate is made at a time, and each once", async () => {
  const estimates = new OverlapEstimates(100_000);
  const task = (groupSize: number): OverlapTask => ({
    overlap: {
      config: RunConfig.parse({
        taskSets: [{ name: "key-chain" }],
        dispatcher: { name: "async" },
        algorithm: { groupsPerStep: 2, groupSize },
      }),
      pools: { sandbox: 8, initSlot: 8, runSlot: 8, gradeSlot: 8, gpu: 1 },
      taskSandboxes: ["none"],
      recorded: null,
      assumed: { ms: { init: 1_000, run: 1_000, evaluate: 1_000 }, deviation: 0.5 },
    },
    seeds: 1,
  });
  const first = estimates.of(task(2));
  expect(estimates.of(task(2))).toBe(first);
  expect(await estimates.of(task(3))).toBeNull();
  expect(await first).toMatchObject({ basis: "assumed", asyncMs: expect.any(Number) });
  expect(await estimates.of(task(3))).not.toBeNull();
});
