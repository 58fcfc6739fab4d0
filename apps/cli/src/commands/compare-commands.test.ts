import { expect, it } from "vitest";
import { CommandFailure } from "./command-failure.ts";
import { parseComparisonFile } from "./compare-commands.ts";

const variants = "variants:\n  - label: a\n  - label: b\n    change: {backend: {name: tinker}}\n";
const withConfig = `name: two\nconfig: {taskSets: [{name: key-chain}]}\n${variants}`;

it("reads YAML and JSON alike", () => {
  const read = parseComparisonFile(withConfig);
  expect(read).toEqual({
    name: "two",
    config: { taskSets: [{ name: "key-chain" }] },
    variants: [{ label: "a" }, { label: "b", change: { backend: { name: "tinker" } } }],
  });
  expect(parseComparisonFile(JSON.stringify(read))).toEqual(read);
});

it("takes a preset where the file has no config, and only there", () => {
  expect(parseComparisonFile(`name: two\n${variants}`, "smoke").config).toMatchObject({ name: "smoke" });
  expect(() => parseComparisonFile(`name: two\n${variants}`)).toThrow("config: is missing");
  expect(() => parseComparisonFile(withConfig, "smoke")).toThrow("config: is in the file");
  expect(() => parseComparisonFile(`name: two\n${variants}`, "smok")).toThrow("no preset smok; there are quickstart");
});

it("names the field that is wrong", () => {
  expect(() => parseComparisonFile(withConfig.replace("label: a", "name: a"))).toThrow(/^variants\.0/);
  expect(() => parseComparisonFile("name: [")).toThrow(CommandFailure);
  expect(() => parseComparisonFile("- a")).toThrow("the file:");
});
