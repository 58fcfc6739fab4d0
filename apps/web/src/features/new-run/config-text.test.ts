import { presets } from "@rolldeck/contracts/presets";
import { Prices } from "@rolldeck/contracts/prices";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { describe, expect, test } from "vitest";
import { fieldLabel, helpText, nullMeaning, sections, taskSetFields } from "./config-fields.ts";
import { configDifferences, configToText, parseConfigText, pathText, setInText, valueAt } from "./config-text.ts";
import { fieldNotes } from "./field-options.ts";
import { onFrom } from "./on-from.ts";

describe("config ↔ YAML", () => {
  test.each(Object.entries(presets))("preset %s survives the way to text and back", (_name, preset) => {
    const { value, error } = parseConfigText(configToText(preset.config));
    expect(error).toBeNull();
    expect(RunConfig.parse(value)).toEqual(RunConfig.parse(preset.config));
  });

  test("one setting changes, comments and order stay", () => {
    const text = "# mine\nname: a\nalgorithm:\n  groupSize: 8 # wide\nseed: 3\n";
    expect(setInText(text, ["algorithm", "groupSize"], 16)).toBe(
      "# mine\nname: a\nalgorithm:\n  groupSize: 16 # wide\nseed: 3\n",
    );
  });

  test("a new setting makes its parents, also where null stood", () => {
    expect(parseConfigText(setInText("", ["model", "warmStart", "steps"], 9)).value).toEqual({
      model: { warmStart: { steps: 9 } },
    });
    expect(parseConfigText(setInText("model:\n  warmStart: null\n", ["model", "warmStart", "steps"], 9)).value).toEqual(
      {
        model: { warmStart: { steps: 9 } },
      },
    );
    expect(parseConfigText(setInText("name: a\n", ["taskSets", 0, "name"], "x")).value).toEqual({
      name: "a",
      taskSets: [{ name: "x" }],
    });
  });

  test.each([
    [
      "aliases that blow up",
      `a: &a [x,x,x,x,x,x,x,x]\nb: &b [${"*a,".repeat(8)}]\nc: &c [${"*b,".repeat(8)}]\nd: [${"*c,".repeat(8)}]\n`,
    ],
    ["an alias of nothing", "name: *nothing\n"],
  ])("%s are an error, not an exception", (_what, text) => {
    expect(parseConfigText(text)).toMatchObject({ value: null, error: { message: expect.any(String) } });
  });

  test("a setting taken out takes its empty parents with it", () => {
    expect(setInText("name: a\nbudget:\n  steps: 3\n", ["budget", "steps"], undefined)).toBe("name: a\n");
    expect(setInText("budget:\n  steps: 3\n", ["budget", "steps"], undefined)).toBe("");
    expect(setInText("name: a\n", ["budget", "steps"], undefined)).toBe("name: a\n");
  });

  test("text that can't be read says where and is never rewritten", () => {
    const bad = "name: a\nseed: [1\n";
    expect(parseConfigText(bad).error?.line).toBeGreaterThanOrEqual(2);
    expect(setInText(bad, ["name"], "b")).toBe(bad);
    expect(parseConfigText("- a\n- b\n").error?.message).toContain("mapping");
    expect(parseConfigText("").value).toEqual({});
  });
});

test("a run that goes on from a checkpoint has no warm start of its own", () => {
  const config = RunConfig.parse(presets.quickstart.config);
  const next = onFrom(config, "01kv8r7q0000abcdefghijkmnp", 10);
  expect(next.model).toMatchObject({ warmStart: null, startFrom: { run: "01kv8r7q0000abcdefghijkmnp", version: 10 } });
  expect(RunConfig.parse(next)).toEqual({ ...config, model: next.model });
});

test("differences name the path and both sides", () => {
  expect(
    configDifferences({ a: { b: 1, c: 2 }, d: [{ e: 1 }] }, { a: { b: 1, c: 3 }, d: [{ e: 1 }, { e: 2 }] }),
  ).toEqual([
    { path: "a.c", before: "2", after: "3" },
    { path: "d[1].e", before: null, after: "2" },
  ]);
});

test("paths are named as problems name them", () => {
  expect(pathText(["taskSets", 0, "weight"])).toBe("taskSets[0].weight");
  expect(valueAt({ taskSets: [{ weight: 2 }] }, ["taskSets", 0, "weight"])).toBe(2);
  expect(valueAt(null, ["a"])).toBeUndefined();
});

describe("the form's fields", () => {
  const fields = sections.flatMap((section) => section.groups.flatMap((group) => group.fields));

  test("every setting of the schema is in exactly one place", () => {
    const shown = fields.map((field) => pathText(field.path)).sort();
    expect(new Set(shown).size).toBe(shown.length);
    const defaults = RunConfig.parse({ taskSets: [{ name: "x" }] });
    const leaves = (value: unknown, path: string): string[] =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? Object.entries(value).flatMap(([key, inner]) => leaves(inner, path ? `${path}.${key}` : key))
        : [path];
    expect(shown).toEqual(
      leaves(defaults, "")
        .filter((path) => path !== "version" && path !== "taskSets")
        .sort(),
    );
  });

  test("defaults and limits come from the schema", () => {
    const groupSize = fields.find((field) => pathText(field.path) === "algorithm.groupSize");
    expect(groupSize).toMatchObject({ kind: "integer", default: 8, limits: "1 … 256" });
    const warmStart = fields.find((field) => pathText(field.path) === "model.warmStart");
    expect(warmStart?.kind).toBe("optional-group");
    expect(warmStart?.fields.map((field) => field.default)).toEqual([90, 64, 0.002]);
    expect(taskSetFields.find((field) => field.path[0] === "name")?.default).toBeUndefined();
  });

  test("null is shown as what it stands for", () => {
    const meaning = (path: string) => nullMeaning(fields.find((field) => pathText(field.path) === path)?.help ?? "");
    expect(meaning("agent.hints")).toBe("the task's own");
    expect(meaning("model.thinking")).toBe("the template's own default");
    expect(meaning("evaluation.temperature")).toBe("the training temperature");
    expect(meaning("agent.maxOutputTokens")).toBe("no such limit");
    expect(nullMeaning("Turns per rollout")).toBe("none");
  });

  test("settings that are more than one plain value have a control of their own", () => {
    const kind = (path: string) => {
      const field = fields.find((each) => pathText(each.path) === path);
      return field && [field.kind, field.nullable];
    };
    expect(kind("model.thinking")).toEqual(["switch", true]);
    expect(kind("agent.callPolicy")).toEqual(["choice", true]);
    expect(kind("agent.hints")).toEqual(["choices", true]);
    expect(kind("agent.mcp")).toEqual(["structure", false]);
    expect(kind("evaluation.passAt")).toEqual(["number-list", false]);
    expect(fields.find((field) => pathText(field.path) === "agent.hints")?.choices).toContain("steps-left");
    expect(taskSetFields.find((field) => field.path[0] === "options")?.kind).toBe("structure");
  });
});

describe("words of the form", () => {
  const fields = sections
    .flatMap(({ groups }) => groups.flatMap((group) => group.fields))
    .flatMap((field) => [field, ...field.fields]);
  const named = (path: string) => {
    const found = fields.find((field) => field.path.join(".") === path);
    if (!found) throw new Error(`no field ${path}`);
    return found;
  };

  test.each([
    ["dispatcher.overSample.groups", "Extra groups"],
    ["dispatcher.overSample.rollouts", "Extra rollouts"],
    ["dispatcher.zeroVariance.mode", "Zero-variance groups"],
    ["dispatcher.stageTimeoutMs.run", "Run deadline, ms"],
    ["dispatcher.name", "Policy"],
    ["backend.name", "Backend"],
    ["backend.dialect", "Server's dialect"],
    ["backend.lora", "LoRA"],
  ])("%s is called %s", (path, label) => {
    expect(fieldLabel(named(path))).toBe(label);
  });

  test("no two fields of a group are called the same, and each says what it is for", () => {
    for (const group of sections.flatMap(({ groups }) => groups)) {
      const labels = group.fields.map(fieldLabel);
      expect([group.title, labels.filter((label, at) => labels.indexOf(label) !== at)]).toEqual([group.title, []]);
    }
    const silent = fields.filter(({ help, path }) => help === "" && path[0] === "dispatcher");
    expect(silent.map(({ path }) => path.join("."))).toEqual([]);
  });

  test("nobody types null in a form: what an empty field stands for is said, null only where it is not the default", () => {
    expect(helpText(named("sandbox.cpus"))).toBe("Cores of one sandbox; empty = the task's own");
    expect(helpText(named("algorithm.dualClip"))).toContain("null = off");
    expect(helpText(named("backend.lora"))).toMatch(/off = all weights$/);
    const unsaid = [...fields, ...taskSetFields].filter(
      (field) => field.default === null && /\bnull\b/.test(helpText(field)),
    );
    expect(unsaid.map(({ path }) => path.join("."))).toEqual([]);
    const unnamed = [...fields, ...taskSetFields].filter(
      ({ default: value, kind, help }) =>
        value === null && kind !== "optional-group" && nullMeaning(help) === "none" && !help.endsWith("null = none"),
    );
    expect(unnamed.map(({ path }) => path.join("."))).toEqual([]);
  });

  test("a cost limit says its currency and what is counted", () => {
    const note = (prices: Prices | null) => fieldNotes({ mcpServers: [], prices }).get("budget.cost");
    expect(note(null)).toBe("The operator names no prices: nothing can be counted.");
    expect(note(Prices.parse({}))).toBe("In USD; the operator has priced nothing yet.");
    expect(note(Prices.parse({ currency: "EUR", gpuHour: 2.5, sandboxHour: 0 }))).toBe(
      "In EUR: an hour of GPU 2.50, an hour of sandbox 0. What has no price is not counted.",
    );
  });
});
