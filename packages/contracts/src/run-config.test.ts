import { describe, expect, it } from "vitest";
import { presets } from "./presets.ts";
import { RunConfig } from "./run-config.ts";

describe("RunConfig", () => {
  it("fills every default from one task set", () => {
    const config = RunConfig.parse({ taskSets: [{ name: "key-chain" }] });
    expect(config.algorithm.groupSize).toBe(8);
    expect(config.dispatcher.bounds).toEqual({ init: 64, run: 64, evaluate: 32 });
    expect(RunConfig.parse(config)).toEqual(config);
  });

  it.each(Object.entries(presets))("preset %s is valid", (_name, preset) => {
    expect(RunConfig.safeParse(preset.config).error).toBeUndefined();
  });

  it.each([
    [{ taskSets: [] }, "taskSets"],
    [{ taskSets: [{ name: "a", size: -1 }] }, "taskSets.0.size"],
    [{ taskSets: [{ name: "a\u0000b" }] }, "taskSets.0.name"],
    [{ taskSets: [{ name: "a" }], algorithm: { groupSize: 1e6 } }, "algorithm.groupSize"],
    [{ taskSets: [{ name: "a" }], algorithm: { eps: 1e-300 } }, "algorithm.eps"],
    [{ taskSets: [{ name: "a" }], algorithm: { beta2: 0.999999999 } }, "algorithm.beta2"],
    [{ taskSets: [{ name: "a" }], backend: { endpoint: "ftp://x" } }, "backend.endpoint"],
    [{ taskSets: [{ name: "a" }], dispacher: {} }, ""],
  ])("refuses %j naming %s", (input, path) => {
    const result = RunConfig.safeParse(input);
    expect(result.error?.issues.map((issue) => issue.path.join("."))).toContain(path);
  });
});
