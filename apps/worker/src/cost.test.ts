/** What a run costs, on real parts: counted at each step's end, shown with the run, and a limit that ends it there. */
import { Prices } from "@rolldeck/contracts/prices";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { readRun } from "@rolldeck/db/reads/read-run";
import { readRunUsage } from "@rolldeck/db/reads/read-run-usage";
import { addJudgeTokens } from "@rolldeck/db/runs/add-judge-tokens";
import { seedMetric } from "@rolldeck/db/testing/seed-run";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";
import { costMetrics } from "./training/cost-metrics.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const prices = (value: object) => ({ env: { ROLLDECK_PRICES: JSON.stringify(value) } });

test("budget.cost ends a run when a step has taken it past the amount, and says so", async () => {
  // An hour that costs so much is spent by the first step.
  rig = await startRig(prices({ currency: "EUR", gpuHour: 1e9 }));
  const config = smokeConfig({ algorithm: { filterZeroVariance: false } });
  const runId = await rig.launch({ ...config, budget: { steps: 9, cost: 0.01 } });
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect((await rig.status(runId)).reason).toMatch(
    /^the cost budget of 0\.01 was reached \([\d.e+]+ by the end of step 1\) after 1 steps$/,
  );
  expect(await rig.value("select step from runs where id = $1", [runId])).toBe(1);
  // Nothing of a further step was begun and given up: the limit is one of steps.
  expect(await rig.value("select count(*)::int from steps where run_id = $1 and state = 'cancelled'", [runId])).toBe(0);
  const { cost } = await readRun(rig.database.pool, runId);
  const usage = await readRunUsage(rig.database.pool, { runId, hosted: false });
  expect(usage).toMatchObject({ trainedGroups: 4, sandboxHours: 0, hostedSampledTokens: 0, judgeTokens: 0 });
  expect(cost).toMatchObject({ step: 1, sandbox: 0, judge: 0, hosted: 0, unpriced: 0 });
  expect(cost?.total).toBe(cost?.gpu);
  expect(cost?.perTrainedGroup).toBe((cost?.total ?? 0) / 4);
  // The run went on for a moment after its last count.
  expect(cost?.gpu).toBeLessThanOrEqual((usage?.gpuHours ?? 0) * 1e9);
});

test("what a hosted policy and a judge read and wrote is counted; without prices nothing is", async () => {
  rig = await startRig();
  const runId = await rig.launch(smokeConfig({ algorithm: { filterZeroVariance: false }, budget: { steps: 1 } }));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { pool } = rig.database;
  expect((await readRun(pool, runId)).cost).toBeNull();
  await addJudgeTokens(pool, runId, 1_200);
  await addJudgeTokens(pool, runId, 34);
  const usage = await readRunUsage(pool, { runId, hosted: true });
  const count = (sql: string) => rig?.value(sql, [runId]);
  const ofRun = "from transitions t join rollouts r on r.id = t.rollout_id where r.run_id = $1";
  expect(usage).toMatchObject({
    gpuHours: 0,
    judgeTokens: 1_234,
    hostedPromptTokens: await count(`select sum(t.prompt_tokens)::float8 ${ofRun}`),
    hostedSampledTokens: await count(`select sum(t.sampled_tokens)::float8 ${ofRun}`),
  });
  // Whole rows are what a trainer is sent, prompts included.
  expect(usage?.hostedTrainedTokens).toBeGreaterThan(usage?.hostedSampledTokens ?? Number.POSITIVE_INFINITY);
  // Some of the policy's tokens have a price and some have none: the part is known, and told as a lower bound.
  const config = RunConfig.parse(smokeConfig({ backend: { name: "tinker" } }));
  const some = Prices.parse({ hostedPromptMillionTokens: 1, judgeMillionTokens: 1 });
  const points = await costMetrics({ pool, prices: some }, { runId, config });
  expect(points).toMatchObject({ "cost/unpriced": 2, "cost/hosted": (usage?.hostedPromptTokens ?? 0) / 1e6 });
  for (const [name, value] of Object.entries(points)) await seedMetric(pool, runId, name, [value]);
  expect((await readRun(pool, runId)).cost).toMatchObject({ unpriced: 2, hosted: points["cost/hosted"] });
  const whole = Prices.parse({ ...some, hostedSampledMillionTokens: 1, hostedTrainedMillionTokens: 1 });
  expect(await costMetrics({ pool, prices: whole }, { runId, config })).not.toHaveProperty("cost/unpriced");
  expect(await readRunUsage(pool, { runId: "nosuchrun", hosted: true })).toBeNull();
});
