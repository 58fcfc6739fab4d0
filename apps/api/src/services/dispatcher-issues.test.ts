import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { expect, test } from "vitest";
import { changeIssues, dispatcherIssues, dispatcherWarnings } from "./dispatcher-issues.ts";

const config = (dispatcher: RunConfigInput["dispatcher"], over: Partial<RunConfigInput> = {}) =>
  RunConfig.parse({ kind: "train", name: "x", taskSets: [{ name: "key-chain" }], dispatcher, ...over });

test.each([
  [
    "environments where none can be reset",
    { name: "fixed-pool" },
    { runtime: "kubernetes" as const },
    ["dispatcher.name"],
  ],
  ["environments where they can be reset", { name: "fixed-pool" }, { runtime: "docker" as const }, []],
  ["environments where the operator says", { name: "fixed-pool" }, {}, []],
  ["an engine's load, which its backend may have", { adaptive: true }, {}, []],
  ["nothing that is not there", { name: "async", maxStaleness: 2 }, {}, []],
])("asking for %s", (_what, dispatcher, sandbox, paths) => {
  expect(dispatcherIssues(config(dispatcher, { sandbox })).map(({ path }) => path)).toEqual(paths);
});

test("a step of more rollouts than can be planned is refused, over-sampling and evaluations counted", () => {
  const asked = (groupsPerStep: number, groups = 0, samples = 0) =>
    dispatcherIssues(
      config(
        { overSample: { groups } },
        { algorithm: { groupsPerStep, groupSize: 256 }, evaluation: { samples, samplesPerInstance: 16 } },
      ),
    ).map(({ path, message }) => `${path}: ${message}`);
  expect(asked(256, 0, 4096)).toEqual([]);
  expect(asked(256, 1)).toEqual(["algorithm.groupsPerStep: a step would have 65792 rollouts, at most 65536 may be"]);
  expect(asked(1, 0, 4097)).toEqual(["evaluation.samples: a step would have 65552 rollouts, at most 65536 may be"]);
});

test.each([
  [{ budget: { steps: 1 } }, /no step that could start/],
  [{ kind: "evaluate" as const, budget: { steps: 1 } }, null],
  [{}, null],
])("async with nothing to overlap is said to be pipeline: %j", (over, words) => {
  const said = dispatcherWarnings(config({ name: "async" }, over)).map(({ message }) => message);
  if (words === null) expect(said).toEqual([]);
  else expect(said).toEqual([expect.stringMatching(words)]);
});

test.each([
  ["an engine's load, where nobody tells it", {}, { adaptive: true }, ["adaptive"]],
  ["what is so already", { adaptive: true }, { adaptive: true, weight: 2 }, []],
  ["less than before", { adaptive: true }, { adaptive: false }, []],
  [
    "what any run may have",
    {},
    { bounds: { run: 3, init: undefined }, adaptive: undefined, startsPerSecond: null },
    [],
  ],
])("a change that asks for %s", (_what, dispatcher, change, paths) => {
  const loadless = (asked: RunConfig) =>
    asked.dispatcher.adaptive ? [{ path: "dispatcher.adaptive", message: "no load" }] : [];
  expect(changeIssues(config(dispatcher), change, loadless).map(({ path }) => path)).toEqual(paths);
});

test("a change that asks for what the run's backend can't honour", () => {
  const few = ({ dispatcher }: RunConfig) =>
    dispatcher.bounds.run > 9 ? [{ path: "dispatcher.bounds.run", message: "9 at most" }] : [];
  const asked = (run: number) => changeIssues(config({ bounds: { run: 4 } }), { bounds: { run } }, few);
  expect([asked(9), asked(10)]).toEqual([[], [{ path: "bounds.run", message: "9 at most" }]]);
});

test.each([
  ["async without staleness", { name: "async", maxStaleness: 0 }, {}, ["dispatcher.maxStaleness"]],
  ["async under an outside trainer", { name: "async" }, { stepSource: "driven" as const }, ["dispatcher.name"]],
  ["async", { name: "async" }, {}, []],
  ["a pipeline without staleness", { name: "pipeline", maxStaleness: 0 }, {}, []],
])("%s is warned of where it gains nothing", (_what, dispatcher, over, paths) => {
  expect(dispatcherWarnings(config(dispatcher, over)).map(({ path }) => path)).toEqual(paths);
});
