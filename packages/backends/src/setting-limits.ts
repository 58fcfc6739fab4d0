/** What each backend can't honour, with the reason and what to do instead. */
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { SettingLimit } from "./capabilities.ts";

/** Neither an address nor a name in the operator's list. */
const isNowhere = ({ backend }: RunConfig): boolean => backend.endpoint === null && backend.server === null;

const noLoad: SettingLimit = {
  path: "dispatcher.adaptive",
  reason:
    "this server does not tell how full its engine is: choose false, and a dispatcher.bounds.run that it can bear",
  refuses: ({ dispatcher }) => dispatcher.adaptive,
};

export const gpuWorkerLimits: readonly SettingLimit[] = [
  {
    path: "agent.sampling.temperature",
    reason:
      "greedy sampling (0) makes all rollouts of a group equal, so nothing could be learnt: choose a value above 0",
    refuses: ({ kind, agent }) => kind === "train" && agent.sampling.temperature === 0,
  },
  {
    path: "agent.sampling.topP",
    reason: "training needs the log-probabilities of what could be drawn; these are of the whole vocabulary: choose 1",
    refuses: ({ kind, agent }) => kind === "train" && agent.sampling.topP < 1,
  },
  {
    path: "agent.sampling.topK",
    reason: "training needs the log-probabilities of what could be drawn; these are of the whole vocabulary: choose −1",
    refuses: ({ kind, agent }) => kind === "train" && agent.sampling.topK > 0,
  },
];

export const tinkerLimits: readonly SettingLimit[] = [
  {
    path: "backend.name",
    reason:
      "this server speaks to Tinker servers only as a library so far: a run could not be brought back after a restart, because they do not tell a model's step; choose gpu-worker",
    refuses: () => true,
  },
  {
    path: "backend.endpoint",
    reason: "no such server is started here: give its address, or its name in the operator's list",
    refuses: isNowhere,
  },
  {
    path: "algorithm.dualClip",
    reason: "the protocol's ppo loss has no dual clip: choose null",
    refuses: ({ kind, algorithm }) => kind === "train" && algorithm.loss === "ppo" && algorithm.dualClip !== null,
  },
  {
    path: "algorithm.gradClipNorm",
    reason: "these servers clip gradients by their own settings or not at all: choose 0",
    refuses: ({ kind, algorithm }) => kind === "train" && algorithm.gradClipNorm !== 0,
  },
  {
    path: "agent.sampling.temperature",
    reason: "their trainers compute log-probabilities at temperature 1: sample at 1",
    refuses: ({ kind, agent }) => kind === "train" && agent.sampling.temperature !== 1,
  },
  noLoad,
];

/** Nothing behind these ever changes weights. */
const samplingLimits: readonly SettingLimit[] = [
  {
    path: "backend.endpoint",
    reason: "no such server is started here: give its address, or its name in the operator's list",
    refuses: isNowhere,
  },
  {
    path: "model.warmStart",
    reason: "this server samples only, so it can't be trained before: choose null",
    refuses: ({ model }) => model.warmStart !== null,
  },
  {
    path: "model.startFrom",
    reason: "this server serves its own weights: choose null",
    refuses: ({ model }) => model.startFrom !== null,
  },
];

export const tokenWireLimits: readonly SettingLimit[] = [
  ...samplingLimits,
  {
    path: "kind",
    reason:
      "this server samples only, nothing here updates its weights: choose evaluate, or stepSource driven with a trainer of your own",
    refuses: ({ kind, stepSource }) => kind === "train" && stepSource === "planned",
  },
  {
    path: "agent.dialect",
    reason:
      "openai is for servers that parse calls themselves; here the model's own text comes back: choose its family's format",
    refuses: ({ agent }) => agent.dialect === "openai",
  },
];

export const chatLimits: readonly SettingLimit[] = [
  ...samplingLimits,
  {
    path: "kind",
    reason:
      "this server hides the tokens it sampled and their log-probabilities, and training needs exactly those: choose evaluate, or a backend that shows them",
    refuses: ({ kind }) => kind === "train",
  },
  {
    path: "agent.dialect",
    reason: "this server writes and parses calls itself: choose openai",
    refuses: ({ agent }) => agent.dialect !== "openai",
  },
  {
    path: "model.chatTemplate",
    reason: "this server renders conversations with its own template: choose null",
    refuses: ({ model }) => model.chatTemplate !== null,
  },
  {
    path: "model.thinking",
    reason: "this server decides by its own settings whether its model thinks: choose null",
    refuses: ({ model }) => model.thinking !== null,
  },
  noLoad,
];
