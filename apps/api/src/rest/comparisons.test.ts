import { ComparisonDetail, ComparisonPage, LaunchedComparison } from "@rolldeck/contracts/api/comparisons";
import { Problem } from "@rolldeck/contracts/api/problems";
import { RunDetail } from "@rolldeck/contracts/api/runs";
import { seedMetric } from "@rolldeck/db/testing/seed-run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonPost, smallConfig, startTestApi, type TestApi } from "../../testing/start-api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const two = {
  name: "rates",
  config: smallConfig,
  variants: [{ label: "slow" }, { label: "fast", change: { algorithm: { learningRate: 1e-3 }, tags: ["hot"] } }],
};
const launch = (body: unknown, headers = {}) => api.fetch("/api/v1/comparisons", jsonPost(body, headers));
const problem = async (response: Response) => Problem.parse(await response.json());
const runCount = async () => Number((await api.database.pool.query("select count(*) from runs")).rows[0].count);
const get = async (comparisonId: string) =>
  ComparisonDetail.parse(await (await api.fetch(`/api/v1/comparisons/${comparisonId}`)).json());

describe("launch", () => {
  it("makes all runs by one request, each with its change, each woken", async () => {
    const response = await launch(two);
    expect(response.status).toBe(201);
    const { comparisonId, runs } = LaunchedComparison.parse(await response.json());
    expect(response.headers.get("location")).toBe(`/api/v1/comparisons/${comparisonId}`);
    expect(runs.map(({ label }) => label)).toEqual(["slow", "fast"]);
    const configs = await Promise.all(
      runs.map(async ({ runId }) => RunDetail.parse(await (await api.fetch(`/api/v1/runs/${runId}`)).json())),
    );
    expect(configs.map(({ name, tags }) => [name, tags])).toEqual([
      ["rates: slow", []],
      ["rates: fast", ["hot"]],
    ]);
    expect(configs.map(({ config }) => config.algorithm.learningRate)).toEqual([1e-6, 1e-3]);
    expect(configs.map(({ config }) => config.agent.maxContextTokens)).toEqual([2048, 2048]);
    const { rows } = await api.database.pool.query(
      "select wake::int, next_seq::int, (select body ->> 'name' from events e where e.run_id = r.id and seq = 1) as name from runs r where id = any($1) order by name",
      [runs.map(({ runId }) => runId)],
    );
    expect(rows).toEqual([
      { wake: 1, next_seq: 2, name: "rates: fast" },
      { wake: 1, next_seq: 2, name: "rates: slow" },
    ]);
  });

  it("happens once per Idempotency-Key", async () => {
    const before = await runCount();
    const [a, b] = [
      await launch(two, { "idempotency-key": "compare-1" }),
      await launch(two, { "idempotency-key": "compare-1" }),
    ];
    expect(await b.json()).toEqual(await a.json());
    expect(await runCount()).toBe(before + 2);
  });

  it("launches none where one variant is refused, and says which and why", async () => {
    const before = await runCount();
    const refused = await launch({
      ...two,
      variants: [
        { label: "ours" },
        // A capability of the backend, not a wrong value: its protocol has no reference policy.
        { label: "hosted", change: { backend: { name: "tinker" }, algorithm: { kl: { coefficient: 0.1 } } } },
        { label: "wrong", change: { backend: { name: "gpu-workr" } } },
      ],
    });
    expect(refused.status).toBe(400);
    const { errors } = await problem(refused);
    const paths = errors?.map(({ path }) => path) ?? [];
    expect(paths.some((path) => path.startsWith("variants[0]") || path.startsWith("config"))).toBe(false);
    expect(errors).toContainEqual(expect.objectContaining({ message: expect.stringMatching(/^variant "hosted": /) }));
    expect(errors).toContainEqual({
      path: "variants[2].backend.name",
      message: 'variant "wrong": no backend "gpu-workr"',
      fix: "did you mean gpu-worker?",
    });
    expect(await runCount()).toBe(before);
    const { rows } = await api.database.pool.query("select count(*)::int as n from comparisons where name = 'rates'");
    expect(rows[0].n).toBe(2);
  });

  it.each([
    ["one variant", { variants: [{ label: "a" }] }, "variants"],
    ["two of one label", { variants: [{ label: "a" }, { label: "a" }] }, "variants"],
    ["too many", { variants: Array.from({ length: 17 }, (_, at) => ({ label: `v${at}` })) }, "variants"],
    ["a config that is a list", { config: [] }, "config"],
    ["text that is no YAML", { config: "a: [" }, "config"],
    ["a config that no variant can have", { config: { ...smallConfig, seeed: 1 } }, "config.seeed"],
  ])("refuses %s", async (_, change, path) => {
    const before = await runCount();
    const refused = await launch({ ...two, ...change });
    expect(refused.status).toBe(400);
    expect((await problem(refused)).errors?.[0]?.path).toBe(path);
    expect(await runCount()).toBe(before);
  });

  it("takes the config as YAML text", async () => {
    const answer = await launch({ ...two, config: "taskSets:\n  - name: key-chain\n" });
    expect(answer.status).toBe(201);
  });
});

describe("read", () => {
  it("gives shared metrics, native values under their own names, config differences and notes", async () => {
    const { comparisonId, runs } = LaunchedComparison.parse(await (await launch(two)).json());
    const [slow, fast] = runs.map(({ runId }) => runId);
    const { pool } = api.database;
    await seedMetric(pool, slow ?? "", "shared/mismatch-prob", [0.25, 0.125]);
    await seedMetric(pool, fast ?? "", "shared/mismatch-prob", [0.5]);
    await seedMetric(pool, slow ?? "", "native/gpu-worker/grad_norm", [3, 0.1]);
    await seedMetric(pool, fast ?? "", "native/gpu-worker/loss:sum", [Number.NaN]);
    await seedMetric(pool, fast ?? "", "policy/loss", [1]);
    const detail = await get(comparisonId);
    expect(detail.variants.map(({ label, change }) => [label, change])).toEqual([
      ["slow", {}],
      ["fast", two.variants[1]?.change],
    ]);
    expect(detail.compared.runs.map(({ runId }) => runId)).toEqual([slow, fast]);
    expect(detail.compared.configDifferences).toEqual([
      { path: "algorithm.learningRate", values: ["0.000001", "0.001"] },
    ]);
    const metric = detail.compared.metrics.find(({ name }) => name === "shared/mismatch-prob");
    expect(metric?.series.map(({ points }) => points.map(({ value }) => value))).toEqual([[0.25, 0.125], [0.5]]);
    expect(detail.native.map(({ values }) => values)).toEqual([
      [{ metric: "native/gpu-worker/grad_norm", name: "grad_norm", step: 2, value: 0.1 }],
      [{ metric: "native/gpu-worker/loss:sum", name: "loss:sum", step: 1, value: null }],
    ]);
    expect(detail.notes[0]?.text).toContain("VeRL");
  });

  it("lists them newest first, in pages", async () => {
    const names: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? "" : `&cursor=${cursor}`;
      const page: ComparisonPage = ComparisonPage.parse(
        await (await api.fetch(`/api/v1/comparisons?limit=2${query}`)).json(),
      );
      expect(page.items.length).toBeLessThanOrEqual(2);
      names.push(...page.items.map(({ comparisonId }) => comparisonId));
      cursor = page.nextCursor;
    } while (cursor !== null);
    const { rows } = await api.database.pool.query("select id from comparisons order by created_at desc, id desc");
    expect(names).toEqual(rows.map(({ id }) => id));
    expect((await api.fetch("/api/v1/comparisons?cursor=zzz")).status).toBe(400);
  });

  it("does not know others", async () => {
    expect((await api.fetch("/api/v1/comparisons/nosuchcomparison")).status).toBe(404);
  });
});
