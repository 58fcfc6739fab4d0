import { presets } from "@rolldeck/contracts/presets";
import { Prices } from "@rolldeck/contracts/prices";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nearestName } from "../nearest-name.ts";
import { createCatalogue } from "./catalogue.ts";
import { checkConfig } from "./check-config.ts";
import { cutText } from "./turn-text.ts";

const root = new URL("../../../../infra/models", import.meta.url).pathname;
const catalogue = await createCatalogue({
  models: [root, "/does/not/exist"],
  templates: [new URL("../../../../infra/chat-templates", import.meta.url).pathname],
  servers: [{ name: "hosted", backend: "openai-chat" }],
}).forCheck();
const base = { taskSets: [{ name: "key-chain" }], agent: { maxContextTokens: 2048 } };
const check = (config: unknown) => checkConfig(config, catalogue);
const issue = (config: unknown) => check(config).issues[0];

it("a number outside of its limits is told in words", () => {
  const messages = check({ ...base, sandbox: { cpus: -1 }, dispatcher: { bounds: { init: 0 }, priority: 12 } }).issues;
  expect(messages.map(({ path, message }) => [path, message])).toEqual([
    ["sandbox.cpus", "must be more than 0"],
    ["dispatcher.bounds.init", "must be at least 1"],
    ["dispatcher.priority", "must be at most 9"],
  ]);
});

describe("checkConfig", () => {
  /** What presets need that only an operator can bring: a large model, an endpoint. */
  const brought: Readonly<Record<string, readonly string[]>> = {
    swe: ["model.name"],
    "swe-evaluate": ["model.name"],
    "swe-offline": ["backend.server"],
    "skyrl-tinker": ["backend.server"],
    "skyrl-v0-7b": ["model.name"],
    "skyrl-v0-8b": ["model.name"],
    "deep-research": ["model.name"],
    "memory-ruler": ["model.name"],
  };
  const bundled = Object.entries(presets).filter(([name]) => brought[name] === undefined);

  it.each(Object.entries(brought))("asks no more for the preset %s than an operator has to bring", (name, paths) => {
    expect(check(Reflect.get(presets, name).config).issues.map(({ path }) => path)).toEqual(paths);
  });

  it.each(bundled)("accepts the preset %s with an estimate", (_name, preset) => {
    const checked = check(preset.config);
    expect(checked.issues).toEqual([]);
    expect(checked.config).not.toBeNull();
    expect(checked.estimate?.rollouts).toBeGreaterThan(0);
  });

  it("accepts a cost budget only where something can be held against it", async () => {
    const config = { ...base, budget: { cost: 10 } };
    expect(issue(config)).toMatchObject({ path: "budget.cost", message: expect.stringContaining("names no prices") });
    const prices = Prices.parse({ gpuHour: 2 });
    expect(checkConfig(config, { ...catalogue, prices }).issues).toEqual([]);
    // Prices of what it may use beside that would leave the total at 0 for ever.
    const others = Prices.parse({ sandboxHour: 1, judgeMillionTokens: 1, hostedPromptMillionTokens: 1 });
    expect(checkConfig(config, { ...catalogue, prices: others }).issues).toMatchObject([
      { path: "budget.cost", message: expect.stringContaining("(gpuHour)") },
    ]);
    const hosted = { ...config, kind: "evaluate", backend: { name: "openai-chat", endpoint: "http://127.0.0.1:9" } };
    const said = checkConfig(hosted, { ...catalogue, prices: others }).issues.find(
      ({ path }) => path === "budget.cost",
    );
    expect(said?.message).toContain("(hostedSampledMillionTokens)");
  });

  it.each([
    ["taskSets: [{ name: key-chain, options: { x: &x [*x] } }]", "", "alias for what it is a part of"],
    ["taskSets: &sets [{ name: key-chain, options: { x: *sets } }]", "", "alias for what it is a part of"],
    ['taskSets: [{ name: key-chain, options: { x: "a\\0" } }]', "taskSets[0].options.x", "NUL or broken surrogates"],
    ['taskSets: [{ name: key-chain, options: { "\\uD800": 1 } }]', "taskSets[0].options", "NUL or broken surrogates"],
  ])("refuses %s: it could be neither checked nor stored", (text, path, message) => {
    expect(issue(text)).toMatchObject({ path, message: expect.stringContaining(message) });
  });

  it("says the same of an object, its JSON and its YAML", () => {
    const yaml = "taskSets:\n  - name: key-chain\nagent:\n  maxContextTokens: 2048\n";
    expect(check(yaml)).toEqual(check(base));
    expect(check(JSON.stringify(base))).toEqual(check(base));
  });

  it.each([
    [{ ...base, dispacher: {} }, "dispacher", "did you mean dispatcher?"],
    [{ ...base, agent: { smapling: {} } }, "agent.smapling", "did you mean sampling?"],
    [{ taskSets: [{ name: "key-chain", max_turns: 3 }] }, "taskSets[0].max_turns", "did you mean maxTurns?"],
    [{ ...base, model: { warmStart: { step: 1 } } }, "model.warmStart.step", "did you mean steps?"],
    [{ ...base, algorithm: { advantage: "rlo" } }, "algorithm.advantage", "did you mean rloo?"],
    [{ ...base, agent: { ...base.agent, dialect: "Hermes" } }, "agent.dialect", "did you mean hermes?"],
    [{ ...base, dispatcher: { name: "pipelines" } }, "dispatcher.name", "did you mean pipeline?"],
    [{ ...base, backend: { name: "gpuworker" } }, "backend.name", "did you mean gpu-worker?"],
    [{ ...base, model: { name: "quickstrat" } }, "model.name", "did you mean quickstart?"],
    [{ ...base, model: { name: "../../etc" } }, "model.name", null],
    [
      { ...base, model: { chatTemplate: "qwen3-acc-thinkin" } },
      "model.chatTemplate",
      "did you mean qwen3-acc-thinking?",
    ],
    [{ ...base, algorithm: { loss: "pop" } }, "algorithm.loss", "did you mean ppo?"],
  ])("names the field and the nearest name in %j", (config, path, fix) => {
    const found = issue(config);
    expect(found?.path).toBe(path);
    if (fix) expect(found?.fix).toBe(fix);
  });

  it("says one thing of a field: what is missing is required, and a limit is the field's own", () => {
    expect(check({}).issues).toEqual([{ path: "taskSets", message: "is required", fix: null }]);
    const { issues } = check({ taskSets: [{ name: "key-chain" }], budget: { steps: 1e99 } });
    expect(issues).toMatchObject([{ path: "budget.steps", message: expect.stringContaining("1000000") }]);
  });

  it("says what is wrong with names and with shapes at once", () => {
    const paths = (config: unknown) => check(config).issues.map(({ path }) => path);
    expect(paths({ ...base, seed: -1, model: { name: "quickstrat" } })).toEqual(["seed", "model.name"]);
    expect(paths({ ...base, agent: { dialect: "hermis", maxTurns: 0 }, dispacher: {} })).toEqual([
      "agent.maxTurns",
      "dispacher",
      "agent.dialect",
    ]);
    expect(paths({ taskSets: [{ name: "key-chian", weight: -1 }], backend: { name: "gpuworker" } })).toEqual([
      "taskSets[0].weight",
      "taskSets[0].name",
      "backend.name",
    ]);
    // Of a name that is no name at all, one thing is said; nothing of the default that stands for it.
    expect(paths({ ...base, model: { name: 7 } })).toEqual(["model.name"]);
    expect(paths({ backend: { name: "gpuworker" } })).toEqual(["taskSets", "backend.name"]);
  });

  it("refuses to train where tokens stay hidden, and checks the server's name and kind", () => {
    const chat = {
      ...base,
      backend: { name: "openai-chat", server: "hosted" },
      agent: { ...base.agent, dialect: "openai" },
    };
    expect(check(chat).issues).toMatchObject([{ path: "kind", message: expect.stringContaining("hides the tokens") }]);
    const evaluate = { ...chat, kind: "evaluate", evaluation: { samples: 4 } };
    expect(check(evaluate).issues).toEqual([]);
    const typed = { ...evaluate, backend: { name: "openai-chat", server: "hosten" } };
    expect(issue(typed)).toMatchObject({ path: "backend.server", fix: "did you mean hosted?" });
    const wrongKind = { ...evaluate, backend: { name: "vllm-generate", server: "hosted" }, agent: base.agent };
    expect(issue(wrongKind)).toMatchObject({ path: "backend.server", fix: "choose openai-chat as backend.name" });
    const driven = {
      ...base,
      stepSource: "driven",
      backend: { name: "openai-completions", endpoint: "http://engine" },
    };
    expect(check(driven).issues).toEqual([]);
  });

  it("refuses what a backend can't honour, with its reason", () => {
    const found = issue({ ...base, agent: { ...base.agent, sampling: { topP: 0.9 } } });
    expect(found?.path).toBe("agent.sampling.topP");
    expect(found?.message).toContain("log-probabilities");
  });

  it.each([
    [{ ...base, kind: "evaluate" }, "evaluation.samples"],
    [{ ...base, algorithm: { groupSize: 1 } }, "algorithm.groupSize"],
    [{ taskSets: base.taskSets, agent: { maxContextTokens: 512 } }, "agent.sampling.maxTokensPerTurn"],
    ["", ""],
    ["just words", ""],
    ["a: [", ""],
    [[], ""],
    [null, ""],
    [3, ""],
  ])("refuses %j at %s", (config, path) => {
    expect(issue(config)?.path).toBe(path);
  });

  it("wants what the best checkpoints are chosen by to be measured", () => {
    const best = (metric: string, evaluation: object, every = 10) =>
      check({ ...base, budget: { steps: 50 }, evaluation, checkpoints: { every, keepBest: { metric } } });
    expect(best("evaluate/success", {}).issues).toMatchObject([{ path: "checkpoints.keepBest.metric" }]);
    expect(best("reward/mean", {}).issues).toEqual([]);
    const warned = (every: number) => best("evaluate/success", { samples: 4, every }).warnings.map(({ path }) => path);
    expect(warned(10)).toEqual([]);
    expect(warned(5)).toEqual([]);
    expect(warned(4)).toEqual(["checkpoints.keepBest.metric"]);
    expect(warned(0)).toEqual(["checkpoints.keepBest.metric"]);
  });

  it("has an answer for anything", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, maxDepth: 4 }), (config) => {
        const checked = check(config);
        expect(checked.ok).toBe(checked.config !== null);
      }),
    );
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => void check(text)));
  });

  it("lists the quickstart model and nothing that is no model", () => {
    expect(catalogue.models.map((model) => model.name)).toContain("quickstart");
  });
});

describe("nearestName", () => {
  it("prefers the fewest edits, and nothing when all are far", () => {
    expect(nearestName("wieght", ["height", "weight"])).toBe("weight");
    expect(nearestName("GROUP_SIZE", ["groupSize"])).toBe("groupSize");
    expect(nearestName("zzzzzz", ["weight"])).toBeNull();
    expect(nearestName("x".repeat(100_000), ["weight"])).toBeNull();
  });
});

describe("cutText", () => {
  it("never cuts inside a character and says how much is missing", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(20), (text, limit) => {
        const cut = cutText(text, limit);
        expect(cut.text.length + cut.cutCharacters).toBe(text.length);
        expect(cut.text.length).toBeLessThanOrEqual(limit);
        expect(cut.text).not.toMatch(/[\ud800-\udbff]$/);
      }),
    );
  });
});
