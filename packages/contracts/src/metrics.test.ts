import { expect, test } from "vitest";
import { z } from "zod";
import { AnyMetricName, metricDefinition, metrics, perSetMetrics, setMetric, taskSetLabels } from "./metrics.ts";

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
  for (const name of [...Object.keys(metrics), "reward/success/memory-small", "evaluate/reward/key-chain 2"]) {
    expect(AnyMetricName.safeParse(name).success, name).toBe(true);
  }
  for (const name of [
    "reward",
    "reward/success/",
    "time/update/x",
    "x/reward/mean/y",
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
