import { expect, test } from "vitest";
import { z } from "zod";
import {
  AnyMetricName,
  metricDefinition,
  metrics,
  nativeMetric,
  nativeParts,
  perSetMetrics,
  setMetric,
  taskSetLabels,
} from "./metrics.ts";
import { mismatchNames, sharedMetricDefinitions, sharedMetricNames } from "./shared-metrics.ts";

test("a set's metric has the definition of the whole, with the set named", () => {
  for (const metric of perSetMetrics) {
    const { title, definition, unit } = metricDefinition(setMetric(metric, "a/b"));
    expect(title).toBe(`${metrics[metric].title}, a/b`);
    expect(definition).toContain(metrics[metric].definition);
    expect(unit).toBe(metrics[metric].unit);
  }
  expect(metricDefinition("time/update")).toBe(metrics["time/update"]);
});

test("names of metrics, and nothing else", () => {
  for (const name of [
    ...Object.keys(metrics),
    "reward/success/memory-small",
    "evaluate/reward/key-chain 2",
    "native/gpu-worker/loss:sum",
    "native/verl/actor/pg_loss",
  ]) {
    expect(AnyMetricName.safeParse(name).success, name).toBe(true);
  }
  for (const name of [
    "reward",
    "reward/success/",
    "time/update/x",
    "x/reward/mean/y",
    "native/verl/",
    "native//loss",
    "native/VeRL/loss",
    "native/gpu worker/loss",
    `native/verl/${"x".repeat(121)}`,
    "x/native/verl/loss",
    `reward/mean/${"x".repeat(111)}`,
  ]) {
    expect(AnyMetricName.safeParse(name).success, name).toBe(false);
  }
  // The API's document is made from it.
  expect(() => z.toJSONSchema(AnyMetricName)).not.toThrow();
});

test("sets are called by their task, and by their place where it comes again", () => {
  expect(taskSetLabels([{ name: "a" }, { name: "b" }, { name: "a" }])).toEqual(["a 1", "b", "a 3"]);
});

test("a backend's own number keeps its name and belongs to no other backend", () => {
  expect(nativeMetric("verl", "actor/pg_loss")).toBe("native/verl/actor/pg_loss");
  expect(nativeParts("native/verl/actor/pg_loss")).toEqual({ backend: "verl", name: "actor/pg_loss" });
  expect(nativeParts("policy/loss")).toBeNull();
  expect(nativeMetric("verl", "")).toBeNull();
  expect(nativeMetric("verl", "x".repeat(121))).toBeNull();
  expect(metricDefinition("native/verl/actor/pg_loss")).toMatchObject({ title: "actor/pg_loss", section: "native" });
});

test("shared metrics are charted like any other, and each word for mismatch has one user's definition", () => {
  for (const name of sharedMetricNames) expect(metricDefinition(name)).toBe(sharedMetricDefinitions[name]);
  const definitions = mismatchNames.map((name) => metricDefinition(name).definition);
  expect(new Set(definitions).size).toBe(mismatchNames.length);
  for (const name of mismatchNames) expect(sharedMetricDefinitions[name].usedBy).toHaveLength(1);
});
