/**
 * A server that samples and trains nothing, behind the port of step backends: its one model is always there, at version 0, under
 * the name that the run gives. Whatever would change weights is refused; launch refuses it before.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { BackendInfo, StepBackend, TrainableModel } from "@rolldeck/contracts/ports/backend";
import type { Sampler } from "@rolldeck/contracts/ports/sampler";
import { z } from "zod";
import { hideSecrets } from "../http/hide-secrets.ts";
import type { Wait } from "../resilient/resilient-calls.ts";
import { parseRetryAfter } from "../resilient/retry-after.ts";
import type { Try } from "../resilient/retry-policy.ts";
import { ChatCalls } from "./chat-calls.ts";
import { ChatSampler } from "./chat-sampler.ts";
import type { ChatText } from "./chat-text.ts";
import { type Endpoint, versionedUrl } from "./endpoint.ts";
import { type EndpointTarget, endpointCalls, endpointSecrets, endpointTargets } from "./endpoint-target.ts";
import { EngineMetrics } from "./engine-metrics.ts";
import { PromptCounts } from "./prompt-counts.ts";
import { readRefusal } from "./read-refusal.ts";
import { TokenSampler, unreachable } from "./token-sampler.ts";
import { tokenWires } from "./token-wires.ts";

export interface SamplingServerOptions {
  readonly endpoint: Endpoint;
  /** The run's tokenizer by model name: what a server that hides tokens said is encoded with it. */
  readonly encoder: (model: string) => Promise<(text: string) => number[]>;
  readonly chatText: ChatText;
}

const Models = z.object({ data: z.array(z.object({ id: z.string(), max_model_len: z.int().nullish() })) });

/** Others' servers are not asked whether they are there more often than this: samples themselves show it. */
const seenMs = 15_000;

/** Opens nothing yet. */
export function connectSamplingServer(options: SamplingServerOptions): StepBackend {
  const { endpoint } = options;
  const wire = endpoint.kind === "openai-chat" ? null : tokenWireOf(endpoint);
  const targets = endpointTargets(endpoint, wire?.address ?? versionedUrl);
  const probes = endpointTargets(endpoint, versionedUrl);
  const calls = endpointCalls(endpoint, targets);
  const looks = endpointCalls(endpoint, probes);
  const secrets = endpointSecrets(endpoint);
  const counts = new PromptCounts();
  const metrics = wire === null ? null : new EngineMetrics(endpoint, () => performance.now());
  const chat = wire === null ? new ChatCalls({ endpoint, calls, secrets }) : null;
  const sampler = (model: string, policyVersion: number, onWait?: (wait: Wait) => void): Sampler => {
    const shared = { model: endpoint.model ?? model, policyVersion, ...(onWait ? { onWait } : {}) };
    if (wire !== null) return new TokenSampler({ ...shared, wire, calls, secrets, stream: endpoint.stream ?? false });
    if (chat === null) throw new RangeError("no wire");
    const encoder = () => options.encoder(model);
    return new ChatSampler({ ...shared, endpoint, chat, counts, encoder, chatText: options.chatText });
  };
  let seen: { readonly info: BackendInfo; readonly atMs: number } | null = null;
  const lookNow = async (signal: AbortSignal | undefined): Promise<BackendInfo> => {
    const info = await looks.call({
      affinityKey: "",
      ...(signal ? { signal } : {}),
      probe: true,
      policy: { maxTries: targets.length, tryMs: 10_000 },
      attempt: (target, trySignal) => look(endpoint, target, trySignal, secrets),
    });
    seen = { info, atMs: performance.now() };
    return info;
  };
  return {
    recovery: "by-step",
    info: (signal) =>
      seen !== null && performance.now() - seen.atMs < seenMs ? Promise.resolve(seen.info) : lookNow(signal),
    ...(metrics === null ? {} : { load: (signal) => metrics.read(signal) }),
    createModel: ({ baseModel }) => Promise.resolve(servedModel(baseModel)),
    adoptModel: ({ modelId }) => servedModel(modelId),
    sampler: ({ samplingSessionId, policyVersion, onWait }) => sampler(samplingSessionId, policyVersion ?? 0, onWait),
    close: async () => {
      await Promise.all([
        chat?.close(),
        metrics?.close(),
        ...[...targets, ...probes].map(({ server }) => server.close()),
      ]);
    },
  };
}

function tokenWireOf({ kind, name }: Endpoint) {
  if (kind === "openai-completions" || kind === "vllm-generate") return tokenWires[kind];
  throw new BoundaryError("model-server", "wrong_kind", `endpoint ${name}: ${kind} is not spoken to by this client`);
}

/** Is anybody there? A server without a list of models is one too; a key that it refuses is said at once. */
async function look(
  endpoint: Endpoint,
  target: EndpointTarget,
  signal: AbortSignal | undefined,
  secrets: readonly string[],
): Promise<Try<BackendInfo>> {
  const what = `GET ${target.name}/models`;
  try {
    const { status, retryAfter, body } = await target.server.send({ method: "GET", path: "/models", signal });
    const text = hideSecrets(await body.text(), secrets);
    const listed = status === 404 || status === 405 || status === 501;
    if (!listed && (status < 200 || status >= 300)) {
      return readRefusal({ status, text, retryAfterMs: parseRetryAfter(retryAfter, Date.now()) }, what);
    }
    return { is: "done", value: infoOf(endpoint, listed ? "" : text) };
  } catch (cause) {
    if (signal?.aborted) throw signal.reason;
    return unreachable(what, cause);
  }
}

function infoOf(endpoint: Endpoint, text: string): BackendInfo {
  const models = Models.safeParse(jsonOrNull(text));
  const first = new URL(endpoint.urls[0] ?? "http://unknown");
  return {
    // Nobody can tell whether it restarted, and nothing of ours lives in it: it is taken to live as long as its address.
    bootId: `${endpoint.kind}@${first.host}${first.pathname}`,
    device: "remote",
    models: models.success
      ? models.data.data.map(({ id, max_model_len }) => ({
          name: id,
          parameters: 0,
          maxContextTokens: max_model_len ?? 0,
        }))
      : [],
    losses: [],
  };
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The model as it is served: version 0, whatever happens. */
function servedModel(modelId: string): TrainableModel {
  const refuse = (): Promise<never> =>
    Promise.reject(
      new BoundaryError("model-server", "unsupported", "this server samples only: nothing here trains it"),
    );
  return {
    modelId,
    state: () => Promise.resolve({ modelId, step: 0, weightVersion: 0, lastSeqId: 0 }),
    saveWeightsForSampler: () => Promise.resolve({ samplingSessionId: modelId, weightVersion: 0 }),
    unload: () => Promise.resolve(),
    loadWeights: refuse,
    forward: refuse,
    forwardBackward: refuse,
    optimStep: refuse,
    saveWeights: refuse,
    zeroGrad: refuse,
  };
}
