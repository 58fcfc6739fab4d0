import { expect, it } from "vitest";
import { overfitConfig } from "./overfit-config.ts";

it("keeps the config and adds what a preflight needs", () => {
  const text = "name: mine\nbudget: {steps: 100, hours: 3}\nevaluation: {samples: 64}\n";
  expect(overfitConfig(text, "8")).toEqual({
    name: "mine",
    preflight: "overfit",
    budget: { steps: 8, hours: 3 },
    evaluation: { every: 0, samples: 0 },
    checkpoints: { every: 8, keepBest: null },
  });
  expect(overfitConfig({ taskSets: [] }, true)).toMatchObject({ taskSets: [], budget: { steps: 20 } });
});

it("leaves out what it would contradict: the best by an evaluation, and fewer checkpoints than a Tinker server needs", () => {
  const config = { backend: { name: "tinker" }, checkpoints: { every: 1, keep: 2, keepBest: { count: 1 } } };
  expect(overfitConfig(config, true)).toMatchObject({ checkpoints: { every: 1, keep: 2, keepBest: null } });
});

it.each(["4", "2.5", "many"])("refuses %s steps", (steps) => {
  expect(() => overfitConfig({}, steps)).toThrow("at least 5");
});

it("refuses what is no config", () => {
  expect(() => overfitConfig("- a", true)).toThrow("not a mapping");
  expect(() => overfitConfig("a: [", true)).toThrow("not valid YAML");
});
