/** The workloads are what the formulas say, and both policies gain on them what was measured before. */
import { describe, expect, test } from "vitest";
import { expectedOf, fitDurations } from "../src/simulator/durations.ts";
import { median as medianOf } from "../src/simulator/median.ts";
import { simulate } from "../src/simulator/simulate.ts";
import { anchorWorkload, paperWorkload, type Workload, workloadSeeds } from "./paper-workload.ts";
import { workloadInput } from "./simulate-workload.ts";

const keys = (groups: number, samples: number, visit = 0) =>
  Array.from({ length: groups * samples }, (_, at) => ({
    instance: { taskSet: 0, split: "train" as const, instanceIndex: Math.floor(at / samples) },
    sample: at % samples,
    visit,
    attempt: 1,
  }));
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const deviation = (values: readonly number[]): number =>
  Math.sqrt(mean(values.map((value) => (value - mean(values)) ** 2)));
const median = (values: readonly number[]): number => medianOf(values) ?? 0;

describe("the paper's workload", () => {
  const many = keys(400, 25).map(paperWorkload(7).work);
  const logs = (pick: (work: (typeof many)[number]) => number, scale: number) =>
    many.map((work) => Math.log(pick(work) / scale));

  test("init is lognormal around 200 s, fresh for each rollout", () => {
    const log = logs(({ initMs }) => initMs, 200_000);
    expect(mean(log)).toBeCloseTo(0, 1);
    expect(deviation(log)).toBeCloseTo(0.4, 1);
    expect(Math.abs(mean(groupMeans(log)))).toBeLessThan(0.02);
    expect(deviation(groupMeans(log))).toBeLessThan(0.1);
  });

  test("run and evaluate vary between instances and within them, independently", () => {
    for (const [pick, scale] of [
      [({ runMs }: (typeof many)[number]) => runMs, 350_000],
      [({ evaluateMs }: (typeof many)[number]) => evaluateMs, 200_000],
    ] as const) {
      const log = logs(pick, scale);
      expect(deviation(log)).toBeGreaterThan(0.42);
      expect(deviation(log)).toBeLessThan(0.55);
      expect(deviation(groupMeans(log))).toBeGreaterThan(0.33);
    }
    const run = groupMeans(logs(({ runMs }) => runMs, 350_000));
    const grade = groupMeans(logs(({ evaluateMs }) => evaluateMs, 200_000));
    const products = run.map((value, at) => value * (grade[at] ?? 0));
    const together = mean(products) / (deviation(run) * deviation(grade));
    expect(Math.abs(together)).toBeLessThan(0.2);
  });

  test("no run takes more than 1,000 s, and some would", () => {
    expect(Math.max(...many.map(({ runMs }) => runMs))).toBe(1_000_000);
  });

  test("is the same whenever it is asked for, and another for every seed, visit and attempt", () => {
    const [key] = keys(1, 1);
    if (key === undefined) throw new Error("one key");
    const { work } = paperWorkload(1);
    expect(work(key)).toEqual(paperWorkload(1).work(key));
    expect(work(key).runMs / 100).toBeCloseTo(paperWorkload(1, 100).work(key).runMs, 6);
    const others = [paperWorkload(2).work(key), work({ ...key, visit: 1 }), work({ ...key, attempt: 2 })];
    for (const other of others) expect(other.initMs).not.toBe(work(key).initMs);
  });

  function groupMeans(values: readonly number[]): number[] {
    return Array.from({ length: 400 }, (_, group) => mean(values.slice(group * 25, group * 25 + 25)));
  }
});

/** Bounded ÷ pipeline of every seed, with an engine that costs nothing. */
function speedups(make: (seed: number) => Workload, seeds: readonly number[], dispatcher = "pipeline") {
  const makespan = (seed: number, name: string) => simulate(workloadInput(make(seed), { dispatcher: name })).makespanMs;
  return seeds.map((seed) => ({ bounded: makespan(seed, "bounded"), other: makespan(seed, dispatcher) }));
}

test("the pipeline's ideal speed-up on the paper's workload is 1.64 to 1.67", { timeout: 240_000 }, () => {
  const measured = speedups((seed) => paperWorkload(seed), workloadSeeds);
  const ratio = median(measured.map(({ bounded }) => bounded)) / median(measured.map(({ other }) => other));
  expect(ratio).toBeGreaterThan(1.64);
  expect(ratio).toBeLessThan(1.67);
});

test("on the anchor's workload a FIFO pipeline gains 1.26, from seed to seed 1.14 to 1.38", {
  timeout: 240_000,
}, () => {
  const seeds = Array.from({ length: 20 }, (_, at) => at + 1);
  const ratios = speedups((seed) => anchorWorkload(seed), seeds).map(({ bounded, other }) => bounded / other);
  expect(mean(ratios)).toBeGreaterThan(1.24);
  expect(mean(ratios)).toBeLessThan(1.29);
  expect(Math.min(...ratios)).toBeGreaterThan(1.1);
  expect(Math.max(...ratios)).toBeLessThan(1.4);
});

test("with rollouts all alike the anchor's pipeline gains 1.42", () => {
  const [alike] = speedups((seed) => anchorWorkload(seed, { sigma: 0 }), [1]);
  expect((alike?.bounded ?? 0) / (alike?.other ?? 1)).toBeCloseTo(1.42, 2);
});

test("longest first, as one earlier pass taught, gains a seventh over first come, first served", {
  timeout: 120_000,
}, () => {
  const measured = workloadSeeds.map((seed) => {
    const workload = paperWorkload(seed);
    const earlier = fitDurations(
      keys(workload.groups, workload.groupSize).flatMap((key) => {
        const { initMs, runMs, evaluateMs } = workload.work(key);
        const { instanceIndex } = key.instance;
        const stage = { taskSet: 0, instanceIndex };
        return [
          { ...stage, stage: "init" as const, ms: initMs },
          { ...stage, stage: "run" as const, ms: runMs },
          { ...stage, stage: "evaluate" as const, ms: evaluateMs },
        ];
      }),
      1,
    );
    const makespan = (dispatcher: string) =>
      simulate({
        ...workloadInput(workload, { dispatcher }),
        work: (key) => workload.work({ ...key, visit: key.visit + 1 }),
        expected: (instance) => (earlier === null ? null : expectedOf(earlier, seed, instance)),
      }).makespanMs;
    return { pipeline: makespan("pipeline"), priority: makespan("priority") };
  });
  const gain = median(measured.map(({ pipeline }) => pipeline)) / median(measured.map(({ priority }) => priority));
  expect(gain).toBeGreaterThan(1.12);
  expect(gain).toBeLessThan(1.25);
});

test("groups that begin ahead of updates make ten steps about twice as fast", { timeout: 240_000 }, () => {
  // A quarter of everything takes a sixteenth of the time; stragglers weigh more, or it would be 2.2.
  const workload = {
    ...paperWorkload(1),
    groups: 16,
    bounds: { init: 24, run: 24, evaluate: 24 },
    pools: { sandbox: 72, initSlot: 24, runSlot: 24, gradeSlot: 24, gpu: 1 },
  };
  const run = (dispatcher: string, msPerStep: number) =>
    simulate({
      ...workloadInput(workload, { dispatcher, steps: 10, config: { dispatcher: { maxStaleness: 2 } } }),
      trainer: { msPerStep },
    });
  const msPerStep = 0.65 * (run("pipeline", 0).makespanMs / 10);
  const ahead = run("async", msPerStep);
  expect(run("pipeline", msPerStep).makespanMs / ahead.makespanMs).toBeGreaterThan(1.9);
  expect(ahead.staleness).toHaveLength(3);
  expect(ahead.steps.map(({ trained }) => trained)).toEqual(ahead.steps.map(() => 128));
});
