import { presets } from "@rolldeck/contracts/presets";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { expect, test } from "vitest";
import { refusedSettings } from "./capabilities.ts";
import { backends, findBackend } from "./registry.ts";

const config = (changes: Partial<RunConfigInput> = {}): RunConfig =>
  RunConfig.parse({ taskSets: [{ name: "key-chain" }], ...changes });
const paths = (issues: { path: string }[]): string[] => issues.map((issue) => issue.path);

test("every preset runs on the backend it names", () => {
  for (const preset of Object.values(presets)) {
    const parsed = RunConfig.parse(preset.config);
    const backend = findBackend(parsed.backend.name);
    expect(backend && refusedSettings(backend, parsed)).toEqual([]);
  }
});

test("a reason says what null means; the word itself stands in brackets, for those who write YAML", () => {
  const reasons = Object.values(backends).flatMap(({ limits }) => limits.map(({ reason }) => reason));
  expect(reasons.some((reason) => reason.includes("null"))).toBe(true);
  for (const reason of reasons) expect(reason.replace(/\([a-zA-Z.]* ?null\)/g, "")).not.toContain("null");
});

test("a loss that the backend lacks is refused with those it has", () => {
  const issues = refusedSettings(backends["gpu-worker"], config({ algorithm: { loss: "sapo" } }));
  expect(issues).toEqual([
    {
      path: "algorithm.loss",
      message: "this backend has no loss sapo: choose one of importance_sampling, ppo, cispo, gspo",
    },
  ]);
});

test("sampling that training can't account for is refused when training, allowed when evaluating", () => {
  const agent = { sampling: { temperature: 0, topP: 0.9, topK: 40 } };
  const refused = paths(refusedSettings(backends["gpu-worker"], config({ agent })));
  expect(refused).toEqual(["agent.sampling.temperature", "agent.sampling.topP", "agent.sampling.topK"]);
  expect(refusedSettings(backends["gpu-worker"], config({ kind: "evaluate", agent }))).toEqual([]);
});

test("workers of the fleet are Rolldeck's own, and the run's alone", () => {
  const fleet = { device: "cpu" } as const;
  const message = (backend: object) => {
    const parsed = config({ backend });
    const issues = refusedSettings(findBackend(parsed.backend.name) ?? backends.tinker, parsed);
    return issues.filter(({ path }) => path === "backend.fleet").map(({ message: said, fix }) => `${said}: ${fix}`);
  };
  expect(message({ fleet })).toEqual([]);
  expect(message({ fleet, endpoint: "http://gpu" })[0]).toContain("backend.endpoint, not both: set backend.endpoint");
  expect(message({ fleet, server: "listed" })[0]).toContain("backend.server, not both");
  expect(message({ fleet, name: "openai-chat" })[0]).toContain("not openai-chat: set it to null");
});

test("settings that a Tinker server would ignore are refused, each at its field; with those put right it trains", () => {
  const agent = { sampling: { temperature: 0.7 } };
  const refused = paths(refusedSettings(backends.tinker, config({ agent })));
  expect(refused).toEqual([
    "backend.dialect",
    "backend.lora",
    "backend.endpoint",
    "checkpoints.every",
    "algorithm.dualClip",
    "algorithm.gradClipNorm",
    "agent.sampling.temperature",
  ]);
  const right: Partial<RunConfigInput> = {
    backend: { name: "tinker", dialect: "skyrl", lora: { rank: 8 }, endpoint: "http://skyrl" },
    algorithm: { dualClip: null, gradClipNorm: 0 },
    checkpoints: { every: 1 },
  };
  expect(refusedSettings(backends.tinker, config(right))).toEqual([]);
  const wrong = (change: Partial<RunConfigInput>) =>
    paths(refusedSettings(backends.tinker, config({ ...right, ...change })));
  expect(wrong({ checkpoints: { every: 1, keep: 1 } })).toEqual(["checkpoints.keep"]);
  expect(wrong({ model: { warmStart: {} } })).toEqual(["model.warmStart"]);
  expect(wrong({ model: { startFrom: { run: "other" } } })).toEqual(["model.startFrom"]);
  expect(wrong({ dispatcher: { name: "async" } })).toEqual(["dispatcher.name"]);
  expect(wrong({ algorithm: { ...right.algorithm, weightDecay: 0.1 } })).toEqual(["algorithm.weightDecay"]);
  const hosted = { ...right.backend, dialect: "hosted" } as const;
  expect(wrong({ backend: hosted, dispatcher: { name: "async" } })).toEqual([]);
  expect(wrong({ algorithm: { ...right.algorithm, kl: { coefficient: 0.1 }, entropyCoefficient: 0.1 } })).toEqual([
    "algorithm.kl.coefficient",
    "algorithm.entropyCoefficient",
  ]);
});

test("which server it is and whether an adapter is trained are settings of backends that have the choice", () => {
  const backend = { dialect: "hosted", lora: {} } as const;
  expect(paths(refusedSettings(backends["gpu-worker"], config({ backend })))).toEqual(["backend.dialect"]);
  const full = config({ backend: { lora: {} }, model: { warmStart: {} } });
  expect(paths(refusedSettings(backends["gpu-worker"], full))).toEqual(["model.warmStart"]);
  const chat = config({
    kind: "evaluate",
    backend: { ...backend, endpoint: "http://chat" },
    agent: { dialect: "openai" },
  });
  expect(paths(refusedSettings(backends["openai-chat"], chat))).toEqual(["backend.dialect", "backend.lora"]);
});

test("a server that hides its tokens refuses to train, whoever asks, and says why", () => {
  const { "openai-chat": chat, "openai-completions": completions } = backends;
  const backend = { name: "openai-chat", endpoint: "http://chat" };
  const agent = { dialect: "openai" };
  expect(refusedSettings(chat, config({ backend, agent }))).toEqual([
    { path: "kind", message: expect.stringMatching(/hides the tokens.*training needs/) },
  ]);
  expect(paths(refusedSettings(chat, config({ backend, agent, stepSource: "driven" })))).toEqual(["kind"]);
  expect(refusedSettings(chat, config({ backend, agent, kind: "evaluate" }))).toEqual([]);
  // One that shows them can serve an outside trainer.
  expect(paths(refusedSettings(completions, config({ backend })))).toEqual(["kind"]);
  expect(refusedSettings(completions, config({ backend, stepSource: "driven" }))).toEqual([]);
});

test("each wire has its dialects, an address or a name, and no weights of ours", () => {
  const chat = (changes: Partial<RunConfigInput>) =>
    paths(refusedSettings(backends["openai-chat"], config({ kind: "evaluate", ...changes })));
  expect(chat({})).toEqual(["backend.endpoint", "agent.dialect"]);
  expect(
    chat({ backend: { server: "judge" }, agent: { dialect: "openai" }, model: { warmStart: {}, thinking: true } }),
  ).toEqual(["model.warmStart", "model.thinking"]);
  const both = { server: "judge", endpoint: "http://chat" };
  expect(chat({ backend: both, agent: { dialect: "openai" } })).toEqual(["backend.server"]);
  const generate = config({ kind: "evaluate", backend: { server: "engine" }, agent: { dialect: "openai" } });
  expect(paths(refusedSettings(backends["vllm-generate"], generate))).toEqual(["agent.dialect"]);
});

test("adaptive concurrency is refused exactly where no engine tells what it bears", () => {
  for (const [name, backend] of Object.entries(backends)) {
    const asked = config({ kind: "evaluate", dispatcher: { adaptive: true } });
    expect(paths(refusedSettings(backend, asked)).includes("dispatcher.adaptive"), name).toBe(!backend.load);
    expect(paths(refusedSettings(backend, config({ kind: "evaluate" })))).not.toContain("dispatcher.adaptive");
  }
});

test("every limit names a field that a run config has", () => {
  const known = config();
  for (const backend of Object.values(backends)) {
    for (const { path } of backend.limits) {
      const value = path.split(".").reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], known);
      expect(value, path).not.toBeUndefined();
    }
  }
  expect(findBackend("constructor")).toBeUndefined();
});

test("a trainer that is launched drives its run and is named by the operator's list; anything else is refused at its field", () => {
  const right: Partial<RunConfigInput> = { stepSource: "driven", backend: { name: "verl", server: "cluster" } };
  for (const backend of [backends.verl, backends["skyrl-train"]]) {
    expect(refusedSettings(backend, config(right))).toEqual([]);
    const wrong = (change: Partial<RunConfigInput>) => paths(refusedSettings(backend, config({ ...right, ...change })));
    expect(wrong({ stepSource: "planned" })).toEqual(["stepSource"]);
    expect(wrong({ kind: "evaluate" })).toEqual(["kind"]);
    expect(wrong({ backend: { name: "verl" } })).toEqual(["backend.server"]);
    expect(wrong({ backend: { name: "verl", endpoint: "http://10.0.0.7" } })).toEqual([
      "backend.server",
      "backend.endpoint",
    ]);
    expect(wrong({ backend: { name: "verl", server: "cluster", lora: {} } })).toEqual(["backend.lora"]);
    expect(wrong({ model: { warmStart: {} } })).toEqual(["model.warmStart"]);
  }
});
