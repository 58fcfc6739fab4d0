import { expect, test } from "vitest";
import { chartDefinition, metricsOf, overviewCharts } from "./overview-charts.ts";

const sets = (...names: string[]) => ({
  taskSets: names.map((name) => ({
    ...{ name, weight: 1, maxTurns: null, dataset: null, options: {}, size: null, fromStep: 1, untilStep: null },
  })),
});

test("a run of one task set has no charts by set", () => {
  const charts = overviewCharts(sets("key-chain")).filter((chart) => !chart.ifKnown);
  expect(charts.some((chart) => chart.equals)).toBe(false);
});

test("a mixed run has a line for each set, also where a task comes twice", () => {
  const charts = overviewCharts(sets("memory-small", "search-small", "memory-small"));
  const success = charts.find((chart) => chart.title === "Success by task set");
  expect(success?.lines.map((line) => line.metric)).toEqual([
    "reward/success/memory-small 1",
    "reward/success/search-small",
    "reward/success/memory-small 3",
  ]);
  expect(success && chartDefinition(success)).toContain("Of task set search-small alone.");
  expect(charts.slice(0, 2).map((chart) => chart.title)).toEqual(["Reward", "Success"]);
});

test("what is asked for at once stays within one answer, however many sets there are", () => {
  const names = metricsOf(overviewCharts(sets(...Array.from({ length: 32 }, (_, index) => `task-${index}`))));
  expect(names.length).toBe(50);
  expect(new Set(names).size).toBe(50);
});
