/** Every backend by its name. Adding one: its folder, what it can't honour, and an entry here. */
import type { launchedBackends } from "@rolldeck/contracts/trainer-jobs";
import type { Backend } from "./capabilities.ts";
import { chatLimits, gpuWorkerLimits, launchedLimits, tinkerLimits, tokenWireLimits } from "./setting-limits.ts";
import { dialects } from "./tinker/dialects.ts";

/** Both launch a trainer that drives the run, and sample its engines over the same wire. */
const launched = (description: string): Backend => ({
  description,
  wire: { kind: "sampling", endpoint: "openai-completions", launched: true },
  losses: [],
  limits: launchedLimits,
  load: true,
  overlap: false,
});

export const backends = {
  "gpu-worker": {
    description:
      "Rolldeck's own model server: all weights or an adapter of small models, on CPU or one GPU; bfloat16 where the GPU has it, else float32. Its engine vllm: experimental, never run.",
    wire: { kind: "tinker", dialect: "rolldeck" },
    losses: dialects.rolldeck.losses.filter((loss) => loss !== "cross_entropy"),
    limits: gpuWorkerLimits,
    load: true,
    overlap: false,
  },
  tinker: {
    description:
      "A server that speaks the Tinker protocol, SkyRL's (JAX) or the hosted service: adapters only, recovered from a checkpoint of every step. The hosted service: experimental, never run.",
    wire: { kind: "tinker", dialect: "by-config" },
    losses: dialects.skyrl.losses.filter((loss) => loss !== "cross_entropy"),
    limits: tinkerLimits,
    load: false,
    overlap: true,
  },
  "openai-completions": {
    description:
      "/v1/completions of vLLM or SGLang: token ids in and out. Evaluation, and training by an outside trainer.",
    wire: { kind: "sampling", endpoint: "openai-completions" },
    losses: [],
    limits: tokenWireLimits,
    load: true,
    overlap: true,
  },
  "vllm-generate": {
    description: "vLLM's token generate endpoint. Evaluation, and training by an outside trainer.",
    wire: { kind: "sampling", endpoint: "vllm-generate" },
    losses: [],
    limits: tokenWireLimits,
    load: true,
    overlap: true,
  },
  "openai-chat": {
    description: "/v1/chat/completions of any server, hosted ones too: tokens stay hidden, so evaluation only.",
    wire: { kind: "sampling", endpoint: "openai-chat" },
    losses: [],
    limits: chatLimits,
    load: false,
    overlap: true,
  },
  "skyrl-train": launched(
    "SkyRL-train as a job on a Ray cluster of the operator's: it drives the run and brings its engines. Experimental: never run on GPUs.",
  ),
  verl: launched(
    "VeRL as a job on a Ray cluster of the operator's: it drives the run and brings its engines. Experimental: never run on GPUs.",
  ),
} satisfies Record<string, Backend> & Record<(typeof launchedBackends)[number], Backend>;
export type BackendName = keyof typeof backends;
export const backendNames = Object.keys(backends);

/** The backend of that name, or undefined: names come from configurations. */
export const findBackend = (name: string): Backend | undefined =>
  Object.entries<Backend>(backends).find(([key]) => key === name)?.[1];
