import { RunDetail, RunPage } from "@rolldeck/contracts/api/runs";
import { InputError, NotFoundError } from "@rolldeck/contracts/errors";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedEvents, seedMetric, seedRun, seedStep } from "../../testing/seed-run.ts";
import { listRuns } from "./list-runs.ts";
import { readEvents } from "./read-events.ts";
import { readRun } from "./read-run.ts";
import { parseRunQuery, queryKeys } from "./run-query.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const ask = { query: "", sort: "createdAt", descending: true, limit: 50, cursor: null } as const;
const names = async (query: string): Promise<string[]> =>
  (await listRuns(database.pool, { ...ask, query })).items.map((run) => run.name).sort();

describe("run query", () => {
  it("reads words, keys, exclusion and quotes", () => {
    expect(parseRunQuery('key -tag:x project:"my project" exp:3 status:running')).toEqual([
      { key: null, value: "key", excluded: false },
      { key: "tag", value: "x", excluded: true },
      { key: "project", value: "my project", excluded: false },
      { key: null, value: "exp:3", excluded: false },
      { key: "status", value: "running", excluded: false },
    ]);
  });
  it("refuses a status that does not exist, naming the field", () => {
    expect(() => parseRunQuery("status:runing")).toThrow(InputError);
  });
  it("never fails in SQL, whatever is typed", async () => {
    const text = fc.oneof(fc.string({ unit: "binary" }), fc.string(), fc.constantFrom("%", "_", "\\", '"', "-", ":"));
    const query = fc.array(fc.tuple(fc.constantFrom("", ...queryKeys.filter((key) => key !== "status")), text), {
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(query, async (parts) => {
        const typed = parts
          .map(([key, value]) => (key ? `${key}:${value}` : value))
          .join(" ")
          .replaceAll("\0", "");
        const page = await listRuns(database.pool, { ...ask, query: typed });
        expect(page.total).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 60 },
    );
  });
});

describe("run list", () => {
  it("filters by words and keys", async () => {
    await seedRun(database.pool, { config: { name: "alpha 100%", project: "p1", tags: ["fast", "long tag"] } });
    await seedRun(database.pool, { config: { name: "beta", project: "p2", tags: ["fast"] }, status: "completed" });
    expect(await names("100%")).toEqual(["alpha 100%"]);
    expect(await names("tag:fast")).toEqual(["alpha 100%", "beta"]);
    expect(await names("tag:fast -project:p2")).toEqual(["alpha 100%"]);
    expect(await names('tag:"long tag"')).toEqual(["alpha 100%"]);
    expect(await names("status:completed")).toEqual(["beta"]);
    expect(await names("task:key-chain model:quickstart backend:gpu-worker kind:train")).toEqual([
      "alpha 100%",
      "beta",
    ]);
    expect(await names("task:other")).toEqual([]);
  });

  it.each(["createdAt", "name", "reward"] as const)("pages by %s without gaps or doubles, both ways", async (sort) => {
    const project = `paged-${sort.toLowerCase()}`;
    for (let n = 0; n < 11; n++) {
      // Equal values and missing ones are what breaks keyset pages.
      const createdAt = new Date(Date.UTC(2026, 0, 1, 0, 0, Math.floor(n / 3))).toISOString();
      const runId = await seedRun(database.pool, { config: { name: `n${n % 4}`, project }, createdAt });
      if (n % 3 > 0) await seedMetric(database.pool, runId, "reward/mean", [n % 2]);
      if (n === 5) await seedMetric(database.pool, runId, "reward/success", [Number.NaN]);
    }
    for (const descending of [true, false]) {
      const whole = await listRuns(database.pool, { ...ask, sort, descending, query: `project:${project}` });
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page: typeof whole = await listRuns(database.pool, {
          query: `project:${project}`,
          sort,
          descending,
          limit: 3,
          cursor,
        });
        expect(page.total).toBe(11);
        seen.push(...RunPage.parse(page).items.map((run) => run.runId));
        cursor = page.nextCursor;
      } while (cursor !== null);
      expect(seen).toEqual(whole.items.map((run) => run.runId));
      expect(new Set(seen).size).toBe(11);
    }
  });

  it("refuses cursors that are not its own", async () => {
    const cursors = [
      "x",
      Buffer.from('["createdAt",true,"1e9","abc"]').toString("base64url"),
      Buffer.from('["name",true,"a","b"]').toString("base64url"),
    ];
    for (const cursor of cursors)
      await expect(listRuns(database.pool, { ...ask, cursor })).rejects.toBeInstanceOf(InputError);
  });

  it("counts for each run those made before it, whatever the list's order and filter", async () => {
    await seedRun(database.pool, { config: { name: "newest" }, createdAt: "2100-01-01T00:00:00Z" });
    await seedRun(database.pool, { config: { name: "oldest" }, createdAt: "2000-01-01T00:00:00Z" });
    const { items } = await listRuns(database.pool, { ...ask, limit: 200 });
    expect(items.map((run) => run.ordinal)).toEqual(items.map((_, at) => items.length - 1 - at));
    const [oldest] = (await listRuns(database.pool, { ...ask, query: "oldest", sort: "name" })).items;
    expect(oldest?.ordinal).toBe(0);
  });

  it("thins the sparkline to 60 points and survives the largest doubles", async () => {
    const runId = await seedRun(database.pool, { config: { project: "spark" } });
    const values = Array.from({ length: 500 }, (_, n) => (n < 100 ? 1.7e308 : n < 200 ? Number.NaN : 1));
    await seedMetric(database.pool, runId, "reward/mean", values);
    const { items } = await listRuns(database.pool, { ...ask, query: "project:spark" });
    const series = items[0]?.rewardSeries ?? [];
    expect(series.length).toBeLessThanOrEqual(60);
    expect(series[0]).toBeGreaterThan(1e308);
    expect(series).toContain(null);
    expect(series.at(-1)).toBeCloseTo(1, 9);
  });
});

describe("run detail", () => {
  it("holds what the contract says, with counts, pace and time left", async () => {
    const runId = await seedRun(database.pool, { config: { budget: { steps: 10 } } });
    await seedEvents(database.pool, runId, 3);
    await seedStep(database.pool, runId, { step: 1, rollouts: [{ reward: 1, ending: "answer" }] });
    await database.pool.query(`update steps set created_at = now() - interval '20 s' where run_id = $1`, [runId]);
    await seedStep(database.pool, runId, {
      step: 2,
      state: "gathering",
      rollouts: [
        { reward: 0, ending: "turn_limit" },
        { reward: null, ending: null },
      ],
    });
    const run = RunDetail.parse(await readRun(database.pool, runId));
    expect(run.head).toBe(3);
    expect(run.counts.byStage).toEqual([
      { stage: "evaluate", state: "settled", count: 1 },
      { stage: "run", state: "active", count: 1 },
    ]);
    expect(run.counts.settled).toBe(2);
    expect(run.openSteps).toMatchObject([{ step: 2, settled: 1, rollouts: 2 }]);
    expect(run.secondsPerStep).toBeGreaterThan(19);
    expect(run.etaSeconds).toBeGreaterThan(190);
    expect(run.boot).toBeNull();
  });

  it("shows the GPU worker's own start while the run waits for it", async () => {
    const runId = await seedRun(database.pool, { status: "queued" });
    expect((await readRun(database.pool, runId)).boot?.phase).toBe("waiting-for-worker");
    const boot = { message: "Downloading torch", done: 80, total: 190, unit: "MB", elapsedMs: 5000 };
    await database.pool.query(`insert into gpu_workers (name, state, boot) values ('gpu-worker', 'installing', $1)`, [
      boot,
    ]);
    expect((await readRun(database.pool, runId)).boot).toEqual({ phase: "environment", ...boot });
    await database.pool.query(`update gpu_workers set state = 'ready'`);
    const own = { phase: "warm-start", message: "step 3 of 90", done: 3, total: 90, unit: "steps", elapsedMs: 100 };
    await database.pool.query(`update runs set status = 'preparing', boot = $2 where id = $1`, [runId, own]);
    expect((await readRun(database.pool, runId)).boot).toEqual(own);
  });

  it("is not found when it is not there", async () => {
    await expect(readRun(database.pool, "nothinghere")).rejects.toBeInstanceOf(NotFoundError);
  });
});

describe("events", () => {
  it("come exactly after the cursor, with the head", async () => {
    const runId = await seedRun(database.pool);
    expect(await readEvents(database.pool, runId, 0, 10)).toEqual({ events: [], head: 0 });
    await seedEvents(database.pool, runId, 25);
    const page = await readEvents(database.pool, runId, 10, 10);
    expect(page?.events.map((event) => event.seq)).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
    expect(page?.head).toBe(25);
    expect(page?.events[0]?.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(await readEvents(database.pool, "nothinghere", 0, 10)).toBeNull();
  });
});
