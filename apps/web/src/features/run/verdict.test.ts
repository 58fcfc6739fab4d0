import { type MetricSeries, RunDetail } from "@rolldeck/contracts/api/runs";
import { presets } from "@rolldeck/contracts/presets";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { expect, test } from "vitest";
import { verdict } from "./verdict.ts";

const config = RunConfig.parse(presets.quickstart.config);
const run = RunDetail.parse({
  runId: "run00000",
  name: "key chain",
  project: "default",
  tags: [],
  kind: "train",
  status: "running",
  reason: null,
  model: "quickstart",
  backend: "gpu-worker",
  taskSets: ["key-chain"],
  step: 3,
  steps: 45,
  reward: null,
  success: null,
  logprobGap: null,
  rewardSeries: [],
  sampledTokens: "0",
  createdAt: "2026-11-29T00:00:00Z",
  startedAt: null,
  endedAt: null,
  lastEventAt: null,
  ordinal: 0,
  config,
  seed: 1,
  head: 1,
  statusSince: "2026-11-29T00:00:00Z",
  boot: null,
  waitingFor: null,
  sandboxRefusal: null,
  preflight: null,
  cost: null,
  servingVersion: null,
  dispatch: null,
  draining: false,
  runLimit: null,
  counts: { byStage: [], settled: 0, trainedRollouts: 0 },
  openSteps: [],
  checkpoints: [],
  secondsPerStep: null,
  etaSeconds: null,
});
const series = (name: MetricSeries["name"], ...values: (number | null)[]): MetricSeries => ({
  name,
  bucketSteps: 1,
  points: values.map((value, step) => ({
    step,
    value,
    min: value,
    max: value,
    count: 1,
    nonFinite: value === null ? "NaN" : null,
    at: "2026-11-29T00:00:00Z",
  })),
});

test("nothing to say before the first point", () => {
  expect(verdict(run, [])).toBeNull();
});

test("held-out success counts before success on trained instances", () => {
  const said = verdict(run, [series("reward/success", 0.9, 0.1), series("evaluate/success", 0.2, 0.97)]);
  expect(said).toEqual({
    text: "Held-out success rose from 20.0\u2009% at step 0 to 97.0\u2009% at step 1.",
    alarm: false,
  });
});

test("alarms come before praise", () => {
  const good = series("evaluate/success", 0.2, 0.97);
  expect(verdict(run, [good, series("rollouts/failed", 0, 0.5)])).toMatchObject({ alarm: true });
  expect(verdict(run, [good, series("policy/grad-norm", 1, null)])?.text).toBe("Gradient norm is NaN at step 1.");
});

test("groups that teach nothing are said to, unless the task is solved", () => {
  const flat = series("groups/zero-variance", 0.2, 0.8);
  expect(verdict(run, [flat, series("reward/success", 0.1, 0.1)])?.alarm).toBe(true);
  expect(verdict(run, [flat, series("reward/success", 0.1, 0.99)])?.alarm).toBe(false);
});

test("a solved step teaches nothing by right, however old the newest evaluation is", () => {
  const flat = series("groups/zero-variance", 0.1, 0.8);
  const early = series("evaluate/success", 0.2);
  expect(verdict(run, [flat, early, series("reward/success", 0.2, 0.9)])).toBeNull();
  expect(verdict(run, [flat, early, series("reward/success", 0.2, 0.3)])).toMatchObject({ alarm: true });
});
