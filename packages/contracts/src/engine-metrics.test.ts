import { expect, test } from "vitest";
import { engineMetricDefinitions, enginePoints } from "./engine-metrics.ts";
import { metricDefinition } from "./metrics.ts";

test("what a worker did not say has no point, and what is unknown to us is none", () => {
  expect(enginePoints({ decode_tokens_per_s: 120, gpu_memory_bytes: 3 * 1024 ** 3, fan: 9 })).toEqual({
    "engine/decode-tokens-per-second": 120,
    "engine/memory": 3,
  });
  expect(enginePoints({})).toEqual({});
});

test("each is charted as a metric with its unit and definition", () => {
  for (const [name, { title, unit, definition }] of Object.entries(engineMetricDefinitions))
    expect(metricDefinition(name as keyof typeof engineMetricDefinitions)).toMatchObject({ title, unit, definition });
});
