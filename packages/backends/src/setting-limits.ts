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

/** Only servers of backend `tinker` differ in what they make of a request. */
const noDialect: SettingLimit = {
  path: "backend.dialect",
  reason: "this backend has one kind of server: name no dialect (null)",
  refuses: ({ backend }) => backend.dialect !== null,
};

export const gpuWorkerLimits: readonly SettingLimit[] = [
  noDialect,
  {
    path: "model.warmStart",
    reason:
      "a warm start trains all weights, and an adapter can't be loaded from it: do without one (null), or train all weights (backend.lora null)",
    refuses: ({ model, backend }) => model.warmStart !== null && backend.lora !== null,
  },
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
    path: "backend.dialect",
    reason:
      "these servers differ in how they add up a loss, and do not say so: choose skyrl (its JAX backend) or hosted",
    refuses: ({ backend }) => backend.dialect === null,
  },
  {
    path: "backend.lora",
    reason: "these servers train adapters only: give a rank",
    refuses: ({ backend }) => backend.lora === null,
  },
  {
    path: "backend.endpoint",
    reason: "no such server is started here: give its address, or its name in the operator's list",
    refuses: isNowhere,
  },
  {
    path: "checkpoints.every",
    reason:
      "these servers do not tell how far a model is, so after a doubt it is made again from a checkpoint: choose 1, one of every step",
    refuses: ({ kind, checkpoints }) => kind === "train" && checkpoints.every !== 1,
  },
  {
    path: "checkpoints.keep",
    reason: "the one before the newest is what a step begins from when its update is in doubt: keep at least 2",
    refuses: ({ kind, checkpoints }) => kind === "train" && checkpoints.keep < 2,
  },
  {
    path: "dispatcher.name",
    reason:
      "SkyRL's JAX backend has one place per model for training and sampling, so nothing may sample an older version: choose a dispatcher that waits for the update, such as pipeline",
    refuses: ({ kind, backend, dispatcher }) =>
      kind === "train" && backend.dialect === "skyrl" && dispatcher.name === "async",
  },
  {
    path: "model.warmStart",
    reason:
      "a warm start is trained by Rolldeck's own model server: do without one (null), and let the server serve a folder that was warm-started",
    refuses: ({ model }) => model.warmStart !== null,
  },
  {
    path: "model.startFrom",
    reason: "a checkpoint of another run may lie on another server: begin with the model's own weights (null)",
    refuses: ({ model }) => model.startFrom !== null,
  },
  {
    path: "algorithm.dualClip",
    reason: "the protocol's ppo loss has no dual clip: leave it off (null)",
    refuses: ({ kind, algorithm }) => kind === "train" && algorithm.loss === "ppo" && algorithm.dualClip !== null,
  },
  {
    path: "algorithm.kl.coefficient",
    reason: "the protocol has no reference policy to compare with: choose 0",
    refuses: ({ kind, algorithm }) => kind === "train" && algorithm.kl.coefficient > 0,
  },
  {
    path: "algorithm.entropyCoefficient",
    reason: "the protocol's losses have no entropy term: choose 0",
    refuses: ({ kind, algorithm }) => kind === "train" && algorithm.entropyCoefficient > 0,
  },
  {
    path: "algorithm.gradClipNorm",
    reason: "these servers clip gradients by their own settings or not at all: choose 0",
    refuses: ({ kind, algorithm }) => kind === "train" && algorithm.gradClipNorm !== 0,
  },
  {
    path: "algorithm.weightDecay",
    reason: "SkyRL's JAX backend takes it off every adapter in its memory, other runs' too: choose 0",
    refuses: ({ kind, backend, algorithm }) =>
      kind === "train" && backend.dialect === "skyrl" && algorithm.weightDecay !== 0,
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
  noDialect,
  {
    path: "backend.lora",
    reason: "this server samples only, what it serves is its own choice: name no adapter (null)",
    refuses: ({ backend }) => backend.lora !== null,
  },
  {
    path: "backend.endpoint",
    reason: "no such server is started here: give its address, or its name in the operator's list",
    refuses: isNowhere,
  },
  {
    path: "model.warmStart",
    reason: "this server samples only, so it can't be trained before: do without a warm start (null)",
    refuses: ({ model }) => model.warmStart !== null,
  },
  {
    path: "model.startFrom",
    reason: "this server serves its own weights: name no checkpoint (null)",
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

/** A trainer that is launched with the run. */
export const launchedLimits: readonly SettingLimit[] = [
  ...tokenWireLimits.filter(({ path }) => path !== "kind" && path !== "backend.endpoint"),
  {
    path: "kind",
    reason: "a trainer is launched to train: choose train, or evaluate at its engines as openai-completions",
    refuses: ({ kind }) => kind !== "train",
  },
  {
    path: "stepSource",
    reason: "the trainer that is launched asks for the batches: choose driven",
    refuses: ({ kind, stepSource }) => kind === "train" && stepSource !== "driven",
  },
  {
    path: "backend.server",
    reason: "which trainer is launched is the operator's list's to say: give a name of it",
    refuses: ({ backend }) => backend.server === null,
  },
  {
    path: "backend.endpoint",
    reason: "the trainer's engines are known by its name: leave this empty (null)",
    refuses: ({ backend }) => backend.endpoint !== null,
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
    reason: "this server renders conversations with its own template: name none (null)",
    refuses: ({ model }) => model.chatTemplate !== null,
  },
  {
    path: "model.thinking",
    reason: "this server decides by its own settings whether its model thinks: leave that to it (null)",
    refuses: ({ model }) => model.thinking !== null,
  },
  noLoad,
];
