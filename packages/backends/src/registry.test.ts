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

test("a loss that the backend lacks is refused with those it has", () => {
  const issues = refusedSettings(backends["gpu-worker"], config({ algorithm: { loss: "gspo" } }));
  expect(issues).toEqual([
    {
      path: "algorithm.loss",
      message: "this backend has no loss gspo: choose one of importance_sampling, ppo",
    },
  ]);
});

test("sampling that training can't account for is refused when training, allowed when evaluating", () => {
  const agent = { sampling: { temperature: 0, topP: 0.9, topK: 40 } };
  const refused = paths(refusedSettings(backends["gpu-worker"], config({ agent })));
  expect(refused).toEqual(["agent.sampling.temperature", "agent.sampling.topP", "agent.sampling.topK"]);
  expect(refusedSettings(backends["gpu-worker"], config({ kind: "evaluate", agent }))).toEqual([]);
});

test("settings that a Tinker server would ignore are refused, each at its field", () => {
  const refused = paths(refusedSettings(backends.tinker, config({ agent: { sampling: { temperature: 0.7 } } })));
  expect(refused).toEqual([
    "backend.name",
    "backend.endpoint",
    "algorithm.dualClip",
    "algorithm.gradClipNorm",
    "agent.sampling.temperature",
  ]);
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
