import { presets } from "@rolldeck/contracts/presets";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { findTool } from "@rolldeck/tools/registry";
import { expect, test } from "vitest";
import { taskNames, tasks } from "./registry.ts";

test("every task is registered under its own name and names tools that exist", () => {
  for (const [name, task] of Object.entries(tasks)) {
    expect(task.name).toBe(name);
    expect(task.tools.map((tool) => findTool(tool)?.name)).toEqual(task.tools);
  }
});

test("every preset names tasks that exist", () => {
  for (const preset of Object.values(presets)) {
    for (const set of RunConfig.parse(preset.config).taskSets) expect(taskNames).toContain(set.name);
  }
});
