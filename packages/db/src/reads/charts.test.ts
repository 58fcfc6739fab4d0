import { Comparison, Matrix, MetricsReply, Timeline } from "@rolldeck/contracts/api/runs";
import { NotFoundError } from "@rolldeck/contracts/errors";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedMetric, seedRun, seedStep } from "../../testing/seed-run.ts";
import { compareRuns } from "./compare-runs.ts";
import { configDifferences } from "./config-differences.ts";
import { bucketWidth } from "./metric-buckets.ts";
import { readMatrix } from "./read-matrix.ts";
import { readMetrics } from "./read-metrics.ts";
import { readTimeline } from "./read-timeline.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const names = ["reward/mean"] as const;
const read = async (runId: string, maxPoints = 600, range: { fromStep?: number; toStep?: number } = {}) => {
  const reply = MetricsReply.parse(await readMetrics(database.pool, { runId, names: [...names], maxPoints, ...range }));
  return reply.series[0] ?? { name: "reward/mean", bucketSteps: 0, points: [] };
};

describe("metric buckets", () => {
  it("are powers of two, aligned, and never more than asked", () => {
    fc.assert(
      fc.property(fc.nat(1e6), fc.nat(1e6), fc.integer({ min: 1, max: 600 }), (lo, span, buckets) => {
        const width = bucketWidth(lo, lo + span, buckets);
        expect(Math.log2(width) % 1).toBe(0);
        const count = Math.floor((lo + span) / width) - Math.floor(lo / width) + 1;
        expect(count === 1 || count <= buckets).toBe(true);
      }),
    );
  });

  it("keep a short series to the last bit", async () => {
    const runId = await seedRun(database.pool);
    const values = [0.1, 0.2, 0.30000000000000004, -1e-300, 1.7976931348623157e308];
    await seedMetric(database.pool, runId, "reward/mean", values);
    const { points, bucketSteps } = await read(runId);
    expect(bucketSteps).toBe(1);
    expect(points.map((point) => point.value)).toEqual(values);
    expect(points.every((point) => point.min === point.value && point.max === point.value && point.count === 1)).toBe(
      true,
    );
  });

  it("keep a spike and old buckets as a series grows", async () => {
    const runId = await seedRun(database.pool);
    const values = Array.from({ length: 10_000 }, (_, n) => (n === 5_000 ? 1e6 : Math.sin(n)));
    await seedMetric(database.pool, runId, "reward/mean", values);
    const before = await read(runId);
    expect(before.points.length).toBeLessThanOrEqual(600);
    expect(Math.max(...before.points.map((point) => point.max ?? 0))).toBe(1e6);
    expect(before.points.reduce((sum, point) => sum + point.count, 0)).toBe(10_000);
    expect(await read(runId)).toEqual(before);
    await database.pool.query(
      `insert into metric_points (run_id, name, step, value) values ($1, 'reward/mean', 10001, 0)`,
      [runId],
    );
    const after = await read(runId);
    expect(after.points.slice(0, -1)).toEqual(before.points.slice(0, after.points.length - 1));
    const zoomed = await read(runId, 600, { fromStep: 4_900, toStep: 5_100 });
    expect(zoomed.bucketSteps).toBe(1);
    expect(zoomed.points).toHaveLength(201);
  });

  it("keep NaN and the infinities apart, out of every mean", async () => {
    const runId = await seedRun(database.pool);
    await seedMetric(database.pool, runId, "reward/mean", [
      1,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      2,
    ]);
    const { points } = await read(runId);
    expect(points.map(({ step, value, nonFinite }) => [step, value, nonFinite])).toEqual([
      [1, 1, null],
      [2, null, "NaN"],
      [3, null, "Infinity"],
      [4, null, "-Infinity"],
      [5, 2, null],
    ]);
    const [bucketed] = [await read(runId, 4)];
    expect(bucketed?.points.length).toBeLessThanOrEqual(4);
    expect(bucketed?.points.find((point) => point.nonFinite === null)).toMatchObject({
      min: 1,
      max: 2,
      value: 1.5,
      count: 2,
    });
    expect(JSON.parse(JSON.stringify(bucketed))).toEqual(bucketed);
  });

  it("never exceed maxPoints, whatever is in the series", async () => {
    const value = fc.oneof(
      fc.double(),
      fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1.7e308),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(value, { minLength: 1, maxLength: 200 }),
        fc.integer({ min: 2, max: 50 }),
        async (values, maxPoints) => {
          const runId = await seedRun(database.pool);
          await seedMetric(database.pool, runId, "reward/mean", values);
          const { points } = await read(runId, maxPoints);
          expect(points.length).toBeLessThanOrEqual(Math.max(4, maxPoints));
          expect(points.reduce((sum, point) => sum + point.count, 0)).toBe(values.length);
          const finite = values.filter(Number.isFinite);
          if (finite.length > 0)
            expect(Math.max(...points.map((point) => point.max ?? Number.NEGATIVE_INFINITY))).toBe(Math.max(...finite));
        },
      ),
      { numRuns: 30 },
    );
  });

  it("are empty, not missing, before the first point", async () => {
    const runId = await seedRun(database.pool);
    expect((await read(runId)).points).toEqual([]);
    await expect(read("nothinghere")).rejects.toBeInstanceOf(NotFoundError);
  });
});

describe("matrix", () => {
  it("shows the newest step by default, with the baseline of scored rollouts", async () => {
    const runId = await seedRun(database.pool);
    await seedStep(database.pool, runId, { step: 1, rollouts: [{ reward: 1, ending: "answer" }] });
    await seedStep(database.pool, runId, {
      step: 2,
      state: "gathering",
      rollouts: [
        { reward: 1, ending: "answer" },
        { reward: 0, ending: "turn_limit" },
        { reward: null, ending: "sandbox_lost" },
        { reward: null, ending: null },
      ],
    });
    const matrix = Matrix.parse(await readMatrix(database.pool, { runId, purpose: "train" }));
    expect(matrix).toMatchObject({ step: 2, state: "gathering", steps: [2, 1] });
    expect(matrix.groups[0]?.mean).toBe(0.5);
    expect(matrix.groups[0]?.cells.map((cell) => cell.sample)).toEqual([0, 1, 2, 3]);
    expect((await readMatrix(database.pool, { runId, purpose: "train", step: 1 })).groups).toHaveLength(1);
    expect(await readMatrix(database.pool, { runId, purpose: "train", step: 9_000_000_000 })).toMatchObject({
      groups: [],
      state: null,
    });
    expect(await readMatrix(database.pool, { runId, purpose: "evaluate" })).toMatchObject({
      step: null,
      steps: [],
      groups: [],
    });
  });
});

describe("timeline", () => {
  it("gives the mean count of every slice exactly", async () => {
    const runId = await seedRun(database.pool, { createdAt: "2026-01-01T00:00:00Z", endedAt: "2026-01-01T00:01:40Z" });
    const { rolloutIds } = await seedStep(database.pool, runId, {
      step: 1,
      rollouts: [
        { reward: 1, ending: "answer" },
        { reward: 1, ending: "answer" },
      ],
    });
    const at = (seconds: number | null) =>
      seconds === null ? null : new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();
    const span = (rollout: number, ready: number, started: number | null, ended: number | null) =>
      database.pool.query(
        `insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at, started_at, ended_at) values ($1, 1, 'run', $2, $3, $4, $5)`,
        [rolloutIds[rollout], runId, at(ready), at(started), at(ended)],
      );
    await span(0, 0, 15, 40);
    // Never ended: it lasts to the end of the run.
    await span(1, 20, 95, null);
    const timeline = Timeline.parse(await readTimeline(database.pool, { runId, seconds: 600, slices: 10 }));
    expect(timeline).toMatchObject({
      fromAt: "2026-01-01T00:00:00.000Z",
      toAt: "2026-01-01T00:01:40.000Z",
      sliceMs: 10_000,
    });
    const run = timeline.lanes.find((lane) => lane.stage === "run");
    expect(run?.active).toEqual([0, 0.5, 1, 1, 0, 0, 0, 0, 0, 0.5]);
    expect(run?.queued).toEqual([1, 0.5, 1, 1, 1, 1, 1, 1, 1, 0.5]);
    const late = await readTimeline(database.pool, { runId, seconds: 50, slices: 10 });
    expect(late.lanes.find((lane) => lane.stage === "run")?.queued).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
  });
});

describe("comparison", () => {
  it("flattens what differs and says so when it matters", async () => {
    const a = await seedRun(database.pool, { config: { name: "a", seed: 1, algorithm: { clipHigh: 0.28 } } });
    const b = await seedRun(database.pool, { config: { name: "b", seed: 2, algorithm: { clipHigh: 0.3 } } });
    await seedMetric(database.pool, a, "reward/mean", [0.1, 0.9, 0.5]);
    await seedMetric(database.pool, b, "reward/mean", [Number.NaN, 0.2]);
    const comparison = Comparison.parse(
      await compareRuns(database.pool, { runIds: [a, b], names: ["reward/mean", "policy/loss"] }),
    );
    expect(comparison.configDifferences).toEqual([
      { path: "algorithm.clipHigh", values: ["0.28", "0.3"] },
      { path: "seed", values: ["1", "2"] },
    ]);
    expect(comparison.metrics[0]?.verdict).toEqual([
      { runId: a, final: 0.5, best: 0.9 },
      { runId: b, final: 0.2, best: 0.2 },
    ]);
    expect(comparison.metrics[1]?.verdict[0]).toEqual({ runId: a, final: null, best: null });
    expect(comparison.warnings).toHaveLength(2);
    await expect(
      compareRuns(database.pool, { runIds: [a, "nothinghere"], names: ["reward/mean"] }),
    ).rejects.toBeInstanceOf(NotFoundError);
    const lora = await seedRun(database.pool, { config: { backend: { name: "gpu-worker", lora: { rank: 8 } } } });
    const whole = await seedRun(database.pool, { config: { backend: { name: "gpu-worker" } } });
    const ofOneBackend = await compareRuns(database.pool, { runIds: [lora, whole], names: ["reward/mean"] });
    expect(ofOneBackend.warnings).toEqual(["What is trained differs: all weights, or adapters of different ranks."]);
  });
  it("names a key that only one has", () => {
    expect(
      configDifferences([
        { a: [{ b: 1 }], e: {} },
        { a: [{ b: 1 }, { c: null }], e: {} },
      ]),
    ).toEqual([{ path: "a[1].c", values: [null, "null"] }]);
  });
});
