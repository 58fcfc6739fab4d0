/** Every backend by its name. Adding one: its folder, what it can't honour, and an entry here. */
import type { Backend, SettingLimit } from "./capabilities.ts";
import { dialects } from "./tinker/dialects.ts";

const gpuWorkerLimits: readonly SettingLimit[] = [
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

const tinkerLimits: readonly SettingLimit[] = [
  {
    path: "backend.name",
    reason:
      "this server speaks to Tinker servers only as a library so far: a run could not be brought back after a restart, because they do not tell a model's step; choose gpu-worker",
    refuses: () => true,
  },
  {
    path: "backend.endpoint",
    reason: "no such server is started here: give its address",
    refuses: ({ backend }) => backend.endpoint === null,
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
];

export const backends = {
  "gpu-worker": {
    description: "Rolldeck's own model server: full fine-tunes of small models, on CPU or one GPU.",
    dialect: "rolldeck",
    losses: dialects.rolldeck.losses.filter((loss) => loss !== "cross_entropy"),
    limits: gpuWorkerLimits,
  },
  tinker: {
    description: "A server that speaks the Tinker protocol: SkyRL's, or the hosted service.",
    dialect: "hosted",
    losses: dialects.skyrl.losses.filter((loss) => loss !== "cross_entropy"),
    limits: tinkerLimits,
  },
} satisfies Record<string, Backend>;
export type BackendName = keyof typeof backends;
export const backendNames = Object.keys(backends);

/** The backend of that name, or undefined: names come from configurations. */
export const findBackend = (name: string): Backend | undefined =>
  Object.entries<Backend>(backends).find(([key]) => key === name)?.[1];
