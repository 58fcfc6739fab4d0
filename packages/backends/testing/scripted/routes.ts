/** Paths of the wire and what answers them. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { SampleBody } from "@rolldeck/contracts/wire/tinker";
import { z } from "zod";
import { type Fence, notLoaded, type TrainingRequest, trainingRequests } from "./models.ts";
import { FailedFuture, parseBody, Refusal } from "./refusal.ts";
import { sampleScripted } from "./sampling.ts";
import { type ScriptedState, streaming } from "./state.ts";

interface RouteInput {
  readonly state: ScriptedState;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: unknown;
  readonly fence: Fence | null;
}
type Route = (input: RouteInput) => unknown;

export async function routes(
  state: ScriptedState,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  body: unknown,
): Promise<unknown> {
  const input = { state, request, response, body, fence: fenceOf(request) };
  if (state.store.foreign && path.startsWith("/ext/")) throw new Refusal("unknown_model", "Not Found");
  const name = path.replace(/^\/api\/v1\//, "");
  if (Object.hasOwn(trainingRequests, name)) return train(input, name as TrainingRequest);
  const model = /^\/ext\/v1\/models\/([^/]+)$/.exec(path);
  if (model) return modelState(input, decodeURIComponent(model[1] ?? ""));
  const stored = /^\/api\/v1\/training_runs\/([^/]+)\/checkpoints\/(.+)$/.exec(path);
  if (stored && request.method === "DELETE") return deleteStored(input, `tinker://${stored[1]}/${stored[2]}`);
  const route = Object.hasOwn(table, `${request.method} ${path}`) ? table[`${request.method} ${path}`] : undefined;
  if (!route) throw new Refusal("unknown_model", `no route ${request.method} ${path}`);
  return route(input);
}

const table: Readonly<Record<string, Route>> = {
  "GET /api/v1/healthz": () => ({ status: "ok" }),
  "GET /api/v1/get_server_capabilities": () => ({
    supported_models: [{ model_name: "quickstart", max_context_length: 256 }],
  }),
  "POST /api/v1/client/config": () => ({ proto_compress_fwdbwd: false, fwdbwd_max_chunk_len: 1024 }),
  "POST /api/v1/create_session": ({ state }) => {
    const id = `session-${randomUUID()}`;
    state.sessions.add(id);
    return { session_id: id };
  },
  "POST /api/v1/session_heartbeat": ({ state, body }) => {
    const { session_id: id } = parseBody(z.object({ session_id: z.string() }), body);
    if (!state.sessions.has(id)) throw new Refusal("unknown_model", "no such session");
    state.counters.heartbeats++;
    return {};
  },
  "POST /api/v1/create_model": ({ state, body, fence }) => {
    const request = parseBody(
      z.object({
        session_id: z.string(),
        base_model: z.string(),
        lora_config: z.object({ rank: z.int().min(0), seed: z.int().nullish() }),
      }),
      body,
    );
    if (!state.sessions.has(request.session_id)) throw new Refusal("unknown_model", "no such session", "session_id");
    const adapters = state.store.foreign;
    if (adapters && request.lora_config.rank < 1)
      throw new Refusal("bad_input", "only adapters (rank 1 and more)", "lora_config.rank");
    if (!adapters && request.lora_config.rank !== 0)
      throw new Refusal("bad_input", "only full fine-tunes (rank 0)", "lora_config.rank");
    return state.store.create(request.base_model, request.lora_config.seed ?? 0, fence);
  },
  "POST /api/v1/unload_model": ({ state, body, fence }) => {
    const { model_id: modelId } = parseBody(z.object({ model_id: z.string() }), body);
    if (!state.store.foreign) state.store.checkFence(fence, state.store.get(modelId));
    state.store.unload(modelId);
    return { request_id: state.store.newFuture({ model_id: modelId }) };
  },
  "POST /api/v1/get_info": ({ state, body }) => {
    const model = state.store.get(parseBody(z.object({ model_id: z.string() }), body).model_id);
    return { model_id: model.modelId, model_data: { model_name: model.baseModel }, is_lora: false };
  },
  "POST /api/v1/create_sampling_session": ({ state, body }) => {
    const request = parseBody(z.object({ model_path: z.string().optional(), base_model: z.string().optional() }), body);
    const checkpoint = request.model_path === undefined ? null : state.store.checkpoints.get(request.model_path);
    if (checkpoint === undefined) throw new Refusal("unknown_model", "no such checkpoint", "model_path");
    return { sampling_session_id: state.store.newSamplingSession({ modelId: null, version: checkpoint?.step ?? 0 }) };
  },
  "POST /api/v1/asample": async (input) => ({ request_id: await submitSample(input) }),
  "POST /api/v1/retrieve_future": async ({ state, body }) => {
    const { request_id: id } = parseBody(z.object({ request_id: z.string() }), body);
    const result = state.store.futures.get(id);
    if (!result) throw new GoneRefusal();
    const readyAt = state.futureReadyAt.get(id) ?? 0;
    await state.updates.hold(readyAt);
    if (state.store.foreign && typeof result.error === "string") throw new FailedFuture(result.error);
    return readyAt <= performance.now() ? result : { type: "try_again", queue_state: "active" };
  },
  "POST /ext/v1/sample": (input) => sample(input),
  "POST /ext/v1/zero_grad": ({ state, body, fence }) => {
    const model = state.store.get(parseBody(z.object({ model_id: z.string() }), body).model_id);
    state.store.checkFence(fence, model);
    model.accumulated = [];
    return {};
  },
  "POST /ext/v1/cancel": () => ({ cancelled: true }),
  "GET /ext/v1/info": ({ state }) => ({
    boot_id: state.bootId,
    device: "scripted",
    versions: { node: process.versions.node },
    memory_bytes: null,
    base_models: [{ name: "quickstart", parameters: 840_000, max_context: 512, vocab_size: 260 }],
    losses: ["cross_entropy", "importance_sampling", "ppo"],
    reduction: "sum",
  }),
  "GET /ext/v1/load": ({ state }) => state.load(state.counters.waiting),
  "GET /ext/v1/events": ({ state, response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify({ phase: "idle", models: state.store.models.size })}\n\n`);
    return streaming;
  },
};

/** A future that is not known, or no longer. */
class GoneRefusal extends Refusal {
  override readonly status = 410;
  constructor() {
    super("unknown_model", "no such future since this worker booted");
  }
}

async function train({ state, body, fence }: RouteInput, name: TrainingRequest): Promise<unknown> {
  const submitted = await state.store.submit(name, body, fence);
  const id = String(submitted.request_id);
  const beside = state.futureMs + (name === "save_weights" ? state.saveMs : 0);
  if (!state.futureReadyAt.has(id)) state.futureReadyAt.set(id, state.updates.readyAt(name) + beside);
  return submitted;
}

async function submitSample(input: RouteInput): Promise<string> {
  const id = input.state.store.newFuture(lostModel(input) ?? (await sample(input)));
  input.state.futureReadyAt.set(id, performance.now() + input.state.futureMs);
  return id;
}

/** Foreign: the failure of a sample whose model its server no longer has. */
function lostModel({ state, body }: RouteInput) {
  const session = state.store.sampling.get(parseBody(SampleBody, body).sampling_session_id ?? "");
  if (!state.store.foreign || session?.modelId == null) return null;
  const model = state.store.models.get(session.modelId);
  if (!model) return notLoaded(session.modelId);
  if (model.digest !== session.digest) state.counters.outdated++;
  return null;
}

async function sample({ state, request, body }: RouteInput) {
  const parsed = parseBody(SampleBody, body);
  const session = state.store.sampling.get(parsed.sampling_session_id ?? "");
  if (!session) throw new Refusal("unknown_model", "no such sampling session", "sampling_session_id");
  const { counters } = state;
  const gone = new AbortController();
  const onClose = (): void => gone.abort();
  request.socket.once("close", onClose);
  counters.waiting++;
  counters.mostWaiting = Math.max(counters.mostWaiting, counters.waiting);
  try {
    if (state.delayMs > 0) await sleep(state.delayMs, undefined, { signal: gone.signal });
    const result = await sampleScripted(parsed, state.policy, session.version);
    counters.samples++;
    return state.store.foreign ? { sequences: result.sequences } : result;
  } catch (error) {
    if (!gone.signal.aborted) throw error;
    counters.cancelled++;
    throw new Refusal("cancelled", "the connection closed");
  } finally {
    counters.waiting--;
    request.socket.off("close", onClose);
  }
}

function deleteStored({ state, fence }: RouteInput, path: string) {
  state.store.checkFence(fence, null);
  if (!state.store.checkpoints.delete(path))
    throw new Refusal("unknown_model", `no complete checkpoint ${path}`, "path");
  return {};
}

function modelState({ state }: RouteInput, modelId: string) {
  const model = state.store.get(modelId);
  const own = [...state.store.checkpoints.values()].filter(({ path }) => path.startsWith(`tinker://${modelId}/`));
  return {
    model_id: model.modelId,
    base_model: model.baseModel,
    step: model.step,
    weight_version: model.step,
    last_seq_id: model.lastSeqId,
    accumulated_datums: model.accumulated.length,
    checkpoints: own.map(({ name, path, step }) => ({ name, path, step, bytes: 1000 })),
    digest: model.digest,
  };
}

/** The holder that a request speaks for. */
function fenceOf(request: IncomingMessage): Fence | null {
  const runId = request.headers["x-rolldeck-run"];
  const token = Number(request.headers["x-rolldeck-fence"]);
  return typeof runId === "string" && Number.isSafeInteger(token) ? { runId, token } : null;
}
