import { EvaluationReport } from "@rolldeck/contracts/api/evaluation";
import { Problem } from "@rolldeck/contracts/api/problems";
import { ConfigCheck } from "@rolldeck/contracts/api/runs";
import { seedGroup, seedRun, seedStep } from "@rolldeck/db/testing/seed-run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonPost, smallConfig, startTestApi, type TestApi } from "../../testing/start-api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const scored = (...rewards: (number | null)[]) =>
  rewards.map((reward) => ({ reward, ending: reward === null ? ("model_server" as const) : ("finish_tool" as const) }));

/** A run whose version 3 was measured on `instances`: rewards of each, null = never scored. */
async function measuredRun(instances: readonly (readonly (number | null)[])[], name = "measured"): Promise<string> {
  const { pool } = api.database;
  const evaluation = { samples: instances.length, samplesPerInstance: 4, passAt: [4, 1, 4] };
  const runId = await seedRun(pool, { config: { ...smallConfig, name, kind: "evaluate", evaluation } });
  const [first = [], ...others] = instances;
  const { stepId } = await seedStep(pool, runId, { step: 3, purpose: "evaluate", rollouts: scored(...first) });
  for (const [nth, rewards] of others.entries())
    await seedGroup(pool, { runId, stepId, instanceIndex: 20 + nth, rollouts: scored(...rewards) });
  return runId;
}

async function report(path: string): Promise<EvaluationReport> {
  const response = await api.fetch(`/api/v1/runs/${path}`);
  expect(response.status).toBe(200);
  return EvaluationReport.parse(await response.json());
}

describe("an evaluation's report", () => {
  it("gives means with intervals over instances and pass@k; what was not scored is counted, never a 0", async () => {
    const runId = await measuredRun([
      [1, 0, 0, 0],
      [1, 1, 1, null],
      [0, 0, 0, 0],
    ]);
    const { evaluations, baseline } = await report(`${runId}/evaluation`);
    expect(baseline).toBeNull();
    const { all, version } = evaluations[0] ?? {};
    expect(version).toBe(3);
    expect(all).toMatchObject({ instances: 3, rollouts: 12, scored: 11, unscored: 1 });
    expect(all?.reward?.value).toBeCloseTo((0.25 + 1 + 0) / 3, 12);
    expect(all?.reward?.halfWidth).toBeGreaterThan(0);
    expect(all?.passAt.map(({ k }) => k)).toEqual([1, 4]);
    // The instance with three scored rollouts can't tell pass@4.
    expect(all?.passAt[1]?.estimate).toMatchObject({ value: 0.5, instances: 2 });
    expect(evaluations[0]?.taskSets).toHaveLength(1);
  });

  it("compares with a baseline over the instances both scored", async () => {
    const better = await measuredRun([
      [1, 1],
      [1, 1],
      [1, 0],
      [1, 1],
    ]);
    const worse = await measuredRun(
      [
        [0, 0],
        [1, 0],
        [0, 0],
        [null, null],
      ],
      "baseline",
    );
    const { baseline } = await report(`${better}/evaluation?baseline=${worse}`);
    expect(baseline).toMatchObject({ runId: worse, runName: "baseline", version: 3 });
    expect(baseline?.success).toMatchObject({ pairs: 3 });
    expect(baseline?.success?.difference).toBeCloseTo((1 + 0.5 + 0.5) / 3, 12);
    expect(baseline?.success?.low).toBeGreaterThan(0);
    const missing = await api.fetch(`/api/v1/runs/${better}/evaluation?baseline=zzzzzzzzzz`);
    expect(missing.status).toBe(404);
  });

  it("is empty for a run that measured nothing", async () => {
    const runId = await seedRun(api.database.pool);
    expect((await report(`${runId}/evaluation`)).evaluations).toEqual([]);
  });
});

describe("launch", () => {
  const launch = (evaluation: object) =>
    api.fetch("/api/v1/runs", jsonPost({ config: { ...smallConfig, evaluation: { samples: 4, ...evaluation } } }));
  it.each([
    [{ samplesPerInstance: 2, passAt: [1, 4] }, "evaluation.passAt[1]"],
    [{ baseline: "nothere12" }, "evaluation.baseline"],
  ])("refuses %j, naming the field", async (evaluation, path) => {
    const response = await launch(evaluation);
    expect(response.status).toBe(400);
    expect(Problem.parse(await response.json()).errors?.map((issue) => issue.path)).toEqual([path]);
  });
  it("is foretold by the check: other runs are asked for there too", async () => {
    const config = {
      ...smallConfig,
      model: { startFrom: { run: "nothere34" } },
      evaluation: { samples: 4, baseline: "nothere12" },
    };
    const check = ConfigCheck.parse(await (await api.fetch("/api/v1/runs/check", jsonPost({ config }))).json());
    expect(check).toMatchObject({ ok: false, config: null });
    expect(check.issues.map((issue) => issue.path)).toEqual(["evaluation.baseline", "model.startFrom.run"]);
  });
  it("refuses a baseline without an evaluation, and takes one with", async () => {
    const bare = await seedRun(api.database.pool);
    expect((await launch({ baseline: bare })).status).toBe(400);
    expect((await launch({ baseline: await measuredRun([[1], [0]]) })).status).toBe(201);
  });
});
