/** What a config asks of the dispatcher that this server's workers can't honour, or that gains little. Pure. */
import type { ChangeDispatcher } from "@rolldeck/contracts/api/dispatch";
import type { ConfigIssue } from "@rolldeck/contracts/api/runs";
import type { InputIssue } from "@rolldeck/contracts/errors";
import { DispatcherConfig, type RunConfig, resettingRuntimes } from "@rolldeck/contracts/run-config";
import type { z } from "zod";

type Issue = z.output<typeof ConfigIssue>;

/** Every plan reads all rollouts of the open steps: beyond this a step is planned slower than it runs. */
const maxStepRollouts = 65_536;

export function dispatcherIssues({
  dispatcher,
  sandbox,
  algorithm,
  evaluation,
}: Pick<RunConfig, "dispatcher" | "sandbox" | "algorithm" | "evaluation">): Issue[] {
  const { overSample } = dispatcher;
  const issues = [
    ...tooMany(
      "algorithm.groupsPerStep",
      (algorithm.groupsPerStep + overSample.groups) * (algorithm.groupSize + overSample.rollouts),
      "lower it, algorithm.groupSize or dispatcher.overSample",
    ),
    ...tooMany(
      "evaluation.samples",
      evaluation.samples * evaluation.samplesPerInstance,
      "lower it or evaluation.samplesPerInstance",
    ),
  ];
  const { runtime } = sandbox;
  // Where the runtime is the operator's choice, the worker that prepares the run looks.
  if (dispatcher.name === "fixed-pool" && runtime !== null && !resettingRuntimes.includes(runtime))
    issues.push({
      path: "dispatcher.name",
      message: `environments are reset from one rollout to the next, and ${runtime} sandboxes can't be`,
      fix: `use pipeline with a sandbox pool of that many, or one of ${resettingRuntimes.join(", ")} as sandbox.runtime`,
    });
  return issues;
}

const tooMany = (path: string, rollouts: number, fix: string): Issue[] =>
  rollouts <= maxStepRollouts
    ? []
    : [{ path, message: `a step would have ${rollouts} rollouts, at most ${maxStepRollouts} may be`, fix }];

/**
 * What launch would refuse of a change to a run's dispatcher; `path` names the field of the change. What is so already is not said
 * again: to ask for something else meanwhile stays allowed.
 * @param config as the run is dispatched now
 * @param refusedSettings settings that the config's backend can't honour
 */
export function changeIssues(
  config: RunConfig,
  change: Omit<z.output<typeof ChangeDispatcher>, "runId">,
  refusedSettings: (config: RunConfig) => readonly InputIssue[],
): InputIssue[] {
  const { dispatcher } = config;
  const bounds = { ...dispatcher.bounds, ...whatIsSaid(change.bounds ?? {}) };
  const changed = DispatcherConfig.parse({ ...dispatcher, ...whatIsSaid(change), bounds });
  const issuesOf = (asked: RunConfig): readonly (Issue | InputIssue)[] =>
    [...dispatcherIssues(asked), ...refusedSettings(asked)].filter(({ path }) => path.startsWith("dispatcher."));
  const before = new Set(issuesOf(config).map(({ path }) => path));
  return issuesOf({ ...config, dispatcher: changed })
    .filter(({ path }) => !before.has(path))
    .map(({ path, message, fix }) => ({ path: path.slice("dispatcher.".length), message, ...(fix ? { fix } : {}) }));
}

const whatIsSaid = (change: object) =>
  Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));

export function dispatcherWarnings({
  dispatcher,
  stepSource,
  kind,
  budget,
}: Pick<RunConfig, "dispatcher" | "stepSource" | "kind" | "budget">): Issue[] {
  if (dispatcher.name !== "async") return [];
  if (stepSource === "driven")
    return [
      {
        path: "dispatcher.name",
        message: "an outside trainer asks for each batch itself: async works as pipeline",
        fix: "use pipeline",
      },
    ];
  if (kind === "train" && budget.steps === 1)
    return [
      {
        path: "dispatcher.name",
        message: "there is no step that could start while another trains: async works as pipeline",
        fix: "use pipeline",
      },
    ];
  if (dispatcher.maxStaleness > 0) return [];
  return [
    {
      path: "dispatcher.maxStaleness",
      message: "with 0 no group starts while another trains: async works as pipeline",
      fix: "set it to at least 1",
    },
  ];
}
