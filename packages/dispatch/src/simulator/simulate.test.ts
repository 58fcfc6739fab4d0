/** Whatever the workload, policy and pools: a simulation keeps the books, the bounds and the laws of queues. */
import { strict as assert } from "node:assert";
import { resources } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { test } from "vitest";
import { buildConfig, counts } from "../../testing/build-snapshot.ts";
import { dispatcherNames } from "../registry.ts";
import { uniform } from "./normal.ts";
import type { RolloutKey, RolloutWork } from "./rollout-work.ts";
import { overlapsUpdates } from "./scenario.ts";
import { simulate } from "./simulate.ts";
import type { Simulation } from "./simulation.ts";
import type { SimulationInput } from "./simulation-input.ts";
import { peakOf } from "./step-function.ts";

const timeoutMs = 120_000;

/** Between 1 and 100 s each, by the rollout alone. */
const someWork =
  (seed: number) =>
  ({ instance, visit, sample, attempt }: RolloutKey): RolloutWork => {
    const ms = (stage: string) =>
      Math.round(1_000 + 99_000 * uniform(seed, stage, instance.instanceIndex, visit, sample, attempt));
    return { initMs: ms("init"), runMs: ms("run"), evaluateMs: ms("evaluate") };
  };

const upTo = (max: number) => fc.integer({ min: 1, max });
const someInput: fc.Arbitrary<SimulationInput> = fc
  .record({
    name: fc.constantFrom(...dispatcherNames),
    bounds: fc.record({ init: upTo(6), run: upTo(8), evaluate: upTo(6) }),
    groupsPerStep: upTo(4),
    groupSize: upTo(4),
    steps: upTo(3),
    samples: fc.integer({ min: 0, max: 2 }),
    pools: fc.record({ sandbox: upTo(9), initSlot: upTo(9), runSlot: upTo(9), gradeSlot: upTo(9), gpu: upTo(9) }),
    sandbox: fc.constantFrom("none" as const, "image" as const),
    inPlace: fc.boolean(),
    failures: fc.record({
      init: fc.double({ min: 0, max: 0.3, noNaN: true }),
      run: fc.constant(0.1),
      evaluate: fc.constant(0.1),
    }),
    fails: fc.boolean(),
    overhead: fc.integer({ min: 0, max: 400 }),
    msPerStep: fc.integer({ min: 0, max: 200_000 }),
    maxStaleness: fc.integer({ min: 0, max: 3 }),
    /** More than a step needs, and groups that teach nothing. */
    spares: fc.option(
      fc.record({
        overSample: fc.record({ groups: fc.integer({ min: 0, max: 2 }), rollouts: fc.integer({ min: 0, max: 2 }) }),
        mode: fc.constantFrom("keep" as const, "filter" as const, "replace" as const),
      }),
    ),
    seed: fc.nat(),
  })
  .map((it) => ({
    config: buildConfig({
      dispatcher: {
        name: it.name,
        bounds: it.bounds,
        maxStaleness: it.maxStaleness,
        ...(it.spares ? { overSample: it.spares.overSample, zeroVariance: { mode: it.spares.mode } } : {}),
      },
      algorithm: { groupsPerStep: it.groupsPerStep, groupSize: it.groupSize },
      evaluation: { samples: it.samples, every: 1 },
      budget: { steps: it.steps },
    }),
    pools: it.pools,
    work: someWork(it.seed),
    taskSizes: [{ train: null, evaluate: 2 }],
    taskSandboxes: [it.sandbox],
    gradedInPlace: [it.inPlace],
    overheads: {
      wakeMs: it.overhead,
      planMs: it.overhead,
      roundMs: it.overhead,
      deliveryMs: it.overhead,
      claimMs: it.overhead,
      stageEndMs: it.overhead,
    },
    trainer: { msPerStep: it.msPerStep },
    ...(it.fails ? { failures: it.failures } : {}),
    seed: it.seed,
  }));

/** Spares make the work itself a matter of order: who is cut, and how often flat groups are drawn again. */
const someExactInput = someInput.filter((input) => !hasSpares(input));

const hasSpares = ({ config: { dispatcher } }: SimulationInput): boolean =>
  dispatcher.overSample.groups + dispatcher.overSample.rollouts > 0 || dispatcher.zeroVariance.mode !== "keep";

/** Work of the rollouts' last attempts by stage, and the longest rollout. */
function workOf(input: SimulationInput, { spans }: Simulation) {
  const total = { init: 0, run: 0, evaluate: 0 };
  const byRollout = new Map<string, number>();
  for (const { stage, startedAt, endedAt, rolloutId } of spans) {
    const ms = startedAt === null ? 0 : (endedAt ?? startedAt) - startedAt;
    total[stage] += ms;
    byRollout.set(rolloutId, (byRollout.get(rolloutId) ?? 0) + ms);
  }
  const { bounds } = input.config.dispatcher;
  const { pools } = input;
  const limits = {
    init: Math.min(bounds.init, pools.initSlot),
    run: Math.min(bounds.run, pools.runSlot),
    evaluate: Math.min(bounds.evaluate, pools.gradeSlot),
  };
  return { total, limits, longestMs: Math.max(...byRollout.values()) };
}

test(
  "every rollout ends once, in the order of its stages, and every run does all of its steps",
  () => {
    fc.assert(
      fc.property(someInput, (input) => {
        const simulation = simulate(input);
        const { steps, spans, outcomes, staleness, status } = simulation;
        assert.ok(["completed", "failed"].includes(status));
        const rollouts = new Set(spans.map(({ rolloutId }) => rolloutId));
        assert.equal(outcomes.completed + outcomes.failed + outcomes.cancelled, rollouts.size);
        for (const { readyAt, startedAt, endedAt } of spans) {
          assert.ok(readyAt <= (startedAt ?? readyAt) && (startedAt ?? 0) <= (endedAt ?? startedAt ?? 0));
          assert.ok((endedAt ?? 0) <= simulation.makespanMs);
        }
        const { dispatcher, algorithm, budget } = input.config;
        const mostStale = overlapsUpdates(dispatcher.name) ? dispatcher.maxStaleness : 0;
        const tooStale = staleness.slice(mostStale + 1).filter((groups) => groups > 0);
        assert.equal(tooStale.length, 0);
        for (const { trained } of steps) assert.ok(trained <= algorithm.groupsPerStep * algorithm.groupSize);
        if (input.failures !== undefined || hasSpares(input)) return;
        assert.equal(status, "completed");
        // Groups that began ahead of the last update may be left over.
        if (mostStale === 0) assert.equal(outcomes.completed, rollouts.size);
        assert.equal(outcomes.failed, 0);
        const trained = steps.filter(({ purpose }) => purpose === "train");
        assert.equal(trained.length, budget.steps);
        const groups = staleness.reduce((sum, count) => sum + count, 0);
        assert.equal(groups, trained.length * algorithm.groupsPerStep);
      }),
      { numRuns: 150 },
    );
  },
  timeoutMs,
);

test(
  "no pool is ever above its size, and every lease comes back",
  () => {
    fc.assert(
      fc.property(someInput, (input) => {
        const { use, busy, spans, waits, outcomes } = simulate(input);
        for (const resource of resources) {
          assert.ok(peakOf(use[resource]) <= input.pools[resource], resource);
          assert.equal(use[resource].value.at(-1) ?? 0, 0, `${resource} is left over`);
          assert.ok(busy[resource] >= 0 && busy[resource] <= 1);
        }
        assert.ok(Object.values(waits).every((ms) => ms >= 0));
        // What they waited is booked, each millisecond under one cause.
        const waited = spans.reduce((sum, { readyAt, startedAt }) => sum + (startedAt ?? readyAt) - readyAt, 0);
        if (input.failures !== undefined) return;
        const booked = Object.values(waits).reduce((sum, ms) => sum + ms, 0);
        const { deliveryMs, claimMs } = input.overheads ?? { deliveryMs: 0, claimMs: 0 };
        const difference = booked + spans.length * (deliveryMs + claimMs) - waited;
        // What was cancelled waited too, and its spans never began.
        assert.ok(difference > -1 && (outcomes.cancelled > 0 || difference < 1), `${booked} of ${waited}`);
      }),
      { numRuns: 100 },
    );
  },
  timeoutMs,
);

test(
  "no policy beats the busiest stage, nor the longest rollout; `bounded` not all the work over its slots",
  () => {
    fc.assert(
      fc.property(someInput, (input) => {
        const simulation = simulate({ ...input, overheads: undefined, failures: undefined });
        const { total, limits, longestMs } = workOf(input, simulation);
        const within = (least: number, what: string) =>
          assert.ok(simulation.makespanMs >= least - 1, `${simulation.makespanMs} < ${least}: ${what}`);
        within(longestMs, "the longest rollout");
        const { pools, config } = input;
        const isBatch = config.dispatcher.name === "batch";
        within(total.init / (isBatch ? pools.initSlot : limits.init), "init");
        within(total.run / (isBatch ? pools.runSlot : limits.run), "run");
        within(total.evaluate / (isBatch ? pools.gradeSlot : limits.evaluate), "evaluate");
        if (config.dispatcher.name !== "bounded") return;
        within((total.init + total.run + total.evaluate) / limits.run, "all of it");
      }),
      { numRuns: 100 },
    );
  },
  timeoutMs,
);

test(
  "is the same every time, and an engine that costs nothing is not slower than one that does",
  () => {
    fc.assert(
      fc.property(someInput, (input) => {
        const slow = simulate(input);
        assert.deepEqual(simulate(input), slow);
        const ideal = simulate({ ...input, overheads: undefined });
        assert.equal(ideal.waits.engine, 0, "without overheads nothing waits for the engine");
        if (input.failures !== undefined) return;
        // Another order of admissions may cost as much as one rollout more at the tail of every step.
        const { longestMs } = workOf(input, ideal);
        assert.ok(ideal.makespanMs <= slow.makespanMs + longestMs * ideal.steps.length);
      }),
      { numRuns: 60 },
    );
  },
  timeoutMs,
);

test(
  "more of everything is not slower, but for the luck of the order at each step's tail",
  () => {
    fc.assert(
      fc.property(someExactInput, upTo(8), (input, more) => {
        const { bounds } = input.config.dispatcher;
        const plain = { ...input, failures: undefined, overheads: undefined };
        const less = simulate(plain);
        const dispatcher = {
          ...input.config.dispatcher,
          bounds: { init: bounds.init + more, run: bounds.run + more, evaluate: bounds.evaluate + more },
        };
        const pools = { ...counts(0) };
        for (const resource of resources) Object.assign(pools, { [resource]: input.pools[resource] + more });
        const with_ = simulate({ ...plain, pools, config: { ...input.config, dispatcher } });
        const { longestMs } = workOf(plain, less);
        assert.ok(with_.makespanMs <= less.makespanMs + longestMs * less.steps.length);
      }),
      { numRuns: 60 },
    );
  },
  timeoutMs,
);
