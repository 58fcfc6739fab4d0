/** Every backend by its name. Adding one: its folder, what it can't honour, and an entry here. */
import type { Backend } from "./capabilities.ts";
import { chatLimits, gpuWorkerLimits, tinkerLimits, tokenWireLimits } from "./setting-limits.ts";
import { dialects } from "./tinker/dialects.ts";

export const backends = {
  "gpu-worker": {
    description: "Rolldeck's own model server: full fine-tunes of small models, on CPU or one GPU.",
    wire: { kind: "tinker", dialect: "rolldeck" },
    losses: dialects.rolldeck.losses.filter((loss) => loss !== "cross_entropy"),
    limits: gpuWorkerLimits,
    load: true,
    overlap: false,
  },
  tinker: {
    description: "A server that speaks the Tinker protocol: SkyRL's, or the hosted service.",
    wire: { kind: "tinker", dialect: "hosted" },
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
} satisfies Record<string, Backend>;
export type BackendName = keyof typeof backends;
export const backendNames = Object.keys(backends);

/** The backend of that name, or undefined: names come from configurations. */
export const findBackend = (name: string): Backend | undefined =>
  Object.entries<Backend>(backends).find(([key]) => key === name)?.[1];
