/** Advice names the bottleneck that was built into a run, and says nothing where there is none. */
import { describe, expect, test } from "vitest";
import { buildConfig, counts } from "../../testing/build-snapshot.ts";
import { adviceSentences } from "./advice-sentences.ts";
import { advise, advising } from "./advise.ts";
import { assumedDurations, drawWork } from "./durations.ts";
import type { Prediction } from "./prediction.ts";
import type { SimulationInput } from "./simulation-input.ts";
import { splitAdvice } from "./split-advice.ts";
import { bootstrap, changeInterval, meanInterval, stepMsOf } from "./step-time.ts";

const bounds = { init: 16, run: 16, evaluate: 16 };
const scenario =
  (over: { bounds?: typeof bounds; ms?: { init: number; run: number; evaluate: number }; dispatcher?: string }) =>
  (seed: number): SimulationInput => ({
    config: buildConfig({
      dispatcher: { name: over.dispatcher ?? "pipeline", bounds: over.bounds ?? bounds },
      algorithm: { groupsPerStep: 16, groupSize: 4 },
      budget: { steps: 1 },
    }),
    pools: { ...counts(16), sandbox: 64 },
    work: drawWork(assumedDurations(over.ms ?? { init: 10_000, run: 10_000, evaluate: 10_000 }, 0.3, 1), seed),
    taskSizes: [{ train: null, evaluate: null }],
    taskSandboxes: ["none"],
  });
const plain = { dispatchers: ["batch", "bounded", "pipeline"] };

describe("advice", () => {
  test("raises the stage that all wait for, though its pool is as small", () => {
    const advice = advise({ ...plain, scenario: scenario({ bounds: { init: 16, run: 16, evaluate: 4 } }) });
    const [first] = advice.sentences.filter((sentence) => sentence.startsWith("raise"));
    expect(first).toMatch(/^raise evaluate from 4 to [678]: −\d\d % step time \(−\d+ to −\d+ %\)$/);
    expect(advice.others.map(({ stepMs }) => stepMs.mean)).toEqual(
      advice.others.map(({ stepMs }) => stepMs.mean).toSorted((a, b) => a - b),
    );
  });

  test("names the policy that overlaps stages", () => {
    const advice = advise({ dispatchers: ["pipeline"], scenario: scenario({ dispatcher: "bounded" }) });
    expect(advice.sentences.some((sentence) => /^use pipeline instead of bounded: −\d\d %/.test(sentence))).toBe(true);
    const pipeline = advice.others.find(({ setting }) => setting.dispatcher === "pipeline");
    expect(pipeline?.change?.high).toBeLessThan(-0.2);
  });

  test("gives back what is idle", () => {
    const advice = advise({ ...plain, scenario: scenario({ ms: { init: 300, run: 20_000, evaluate: 300 } }) });
    expect(advice.sentences.some((sentence) => /^lower evaluate from 16 to 8: no slower/.test(sentence))).toBe(true);
  });

  test("finds nothing where the longest rollout is all of the step", () => {
    const roomy = { init: 64, run: 64, evaluate: 64 };
    const advice = advise({
      ...plain,
      scenario: (seed) => ({ ...scenario({ bounds: roomy })(seed), pools: counts(64) }),
    });
    expect(advice.sentences[0]).toBe("nothing that was tried makes a step 2 % shorter");
  });

  test("can be followed and stopped between two simulations", () => {
    const steps = advising({ ...plain, seeds: 2, scenario: scenario({}) });
    let done = 0;
    for (let step = steps.next(); step.done !== true; step = steps.next()) expect(step.value.done).toBe(++done);
    // The present setting, two other policies and three bounds at least, two seeds each.
    expect(done).toBeGreaterThanOrEqual(12);
    expect(done % 2).toBe(0);
  });

  test("does not call a gain what chance may have made", () => {
    const setting = { dispatcher: "pipeline", bounds, sandboxes: 64 };
    const of = (evaluate: number, change: Prediction["change"]): Prediction => ({
      setting: { ...setting, bounds: { ...bounds, evaluate } },
      stepMs: { mean: 100, low: 90, high: 110 },
      change,
      simulation: advise({ ...plain, seeds: 1, maxSettings: 0, scenario: scenario({}) }).present.simulation,
    });
    const sentences = adviceSentences(of(16, null), [of(32, { mean: -0.05, low: -0.12, high: 0.01 })]);
    expect(sentences).toEqual(["nothing that was tried makes a step 2 % shorter"]);
  });
});

describe("step times", () => {
  test("of steps that overlap leave the beginning out", () => {
    const ended = (endedAt: number) => ({ purpose: "train" as const, step: 1, state: "done" as const, endedAt });
    const of = (...ends: number[]) => {
      const { present } = advise({ ...plain, seeds: 1, maxSettings: 0, scenario: scenario({}) });
      const steps = ends.map((endedAt) => ({ ...ended(endedAt), createdAt: 0, updateAt: 0, trained: 1 }));
      return stepMsOf({ ...present.simulation, steps, makespanMs: 7 });
    };
    expect(of(100)).toBe(100);
    expect(of(100, 160)).toBe(80);
    expect(of(100, 160, 220)).toBe(60);
    expect(of()).toBe(7);
  });

  test("have intervals that hold their mean, narrow with the values", () => {
    expect(meanInterval([5])).toEqual({ mean: 5, low: 5, high: 5 });
    const wide = meanInterval([1, 9, 1, 9]);
    expect(wide.low).toBeLessThan(wide.mean);
    expect(wide.high).toBeGreaterThan(wide.mean);
    expect(meanInterval([5, 5.1, 4.9, 5]).high).toBeLessThan(5.2);
    // The same luck on both sides: twice as slow is twice as slow, whichever seeds are drawn.
    const change = changeInterval([1, 5, 9], [2, 10, 18]);
    expect([change.mean, change.low, change.high]).toEqual([1, 1, 1]);
    expect(bootstrap(3, (chosen) => chosen.length)).toEqual({ mean: 3, low: 3, high: 3 });
  });
});

describe("the split of sampler and trainer", () => {
  const gpu = { requestTokensPerSecond: 50, peakTokensPerSecond: 400, halfAt: 8 };
  const input = (msPerStep: number): SimulationInput => ({
    ...scenario({})(1),
    pools: counts(256),
    work: () => ({ initMs: 0, runMs: 0, evaluateMs: 0, sampling: { tokens: 1_000, turns: 1 } }),
    gpu,
    trainer: { msPerStep },
  });

  test("adds replicas while they shorten a step", () => {
    const { rows } = splitAdvice(input(60_000));
    expect(rows.length).toBeGreaterThan(1);
    const times = rows.map(({ stepMs }) => stepMs);
    expect(times[1]).toBeLessThan(times[0] ?? 0);
    expect(rows.map(({ replicas }) => replicas)).toEqual(rows.map((_, at) => at + 1));
  });

  test("says what stands in the way where they are no help", () => {
    const slow = { ...input(1), work: () => ({ initMs: 60_000, runMs: 0, evaluateMs: 0 }) };
    const { enough, sentence } = splitAdvice({ ...slow, gpu: undefined });
    expect(enough).toBeNull();
    expect(sentence).toMatch(
      /^with 2 sampler replicas the trainer still waits \d+ % of the time: rollouts wait for init slots$/,
    );
  });
});
