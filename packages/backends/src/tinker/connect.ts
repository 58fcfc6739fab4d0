/** A step backend behind a Tinker server: ours, SkyRL's or the hosted service. */
import { randomInt } from "node:crypto";
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import type { BackendInfo, EngineReading, StepBackend } from "@rolldeck/contracts/ports/backend";
import { ScoreReply, WorkerInfo, WorkerLoad } from "@rolldeck/contracts/wire/tinker";
import { z } from "zod";
import type { MovingAddress } from "../http/moving-server.ts";
import { dialects, type TinkerDialect, type TinkerDialectName } from "./dialects.ts";
import { awaitFuture } from "./future.ts";
import { TinkerHttp } from "./http.ts";
import { fenceHeaders, TinkerModel } from "./model.ts";
import { parseReply } from "./parse-reply.ts";
import { TinkerSampler } from "./sampler.ts";
import { isUnknown, TinkerSession } from "./session.ts";

export interface TinkerOptions {
  readonly url: string | MovingAddress;
  readonly apiKey: string | null;
  readonly dialect: TinkerDialectName;
  /** What the server calls the model; null or absent = the run's name for it. */
  readonly model?: string | null;
  /** Failures in a row of a training request are waited out this long, milliseconds. Default 60 000. */
  readonly trainingOutageMs?: number;
  /** The same for a sample. Short: whoever samples then looks whether another version serves. Default 2 000. */
  readonly samplingOutageMs?: number;
  /** What serves is stored, for samplers that are other servers. Default false. */
  readonly storesForSamplers?: boolean;
  readonly maxConnections?: number;
  readonly backoffMs?: number;
  readonly heartbeatMs?: number;
  /** Hears of failed heartbeats, which end nothing by themselves. */
  readonly onError?: (error: unknown) => void;
}

const CreateModelReply = z.object({ model_id: z.string() });
const Capabilities = z.object({
  supported_models: z.array(z.object({ model_name: z.string(), max_context_length: z.int().nullish() })),
});

/** Opens nothing yet: connections and the session come with the first call that needs them. */
export function connectTinker(options: TinkerOptions): StepBackend {
  const dialect: TinkerDialect = dialects[options.dialect];
  const http = new TinkerHttp(options);
  const session = new TinkerSession(http, options);
  const name = typeof options.url === "string" ? new URL(options.url).host : options.url.name;
  const storesForSamplers = options.storesForSamplers ?? false;
  const trainingOutageMs = options.trainingOutageMs ?? 60_000;
  // Samples are numbered from a random start: several processes may share one sampling session, and gaps are allowed.
  let seqId = randomInt(2 ** 30);
  return {
    recovery: dialect.recovery,
    info: (signal) => (dialect.extensions ? workerInfo(http, signal) : serverInfo(http, name, dialect, signal)),
    ...(dialect.extensions ? { load: (signal) => workerLoad(http, signal) } : {}),
    createModel: async ({ baseModel, seed, loraRank = 0, fence, signal }) => {
      const shared = { signal, outageMs: trainingOutageMs };
      const headers = fenceHeaders(dialect, fence);
      const wanted = options.model ?? baseModel;
      const base_model = dialect.extensions ? wanted : await servedName(http, wanted, signal);
      const settings = { base_model, lora_config: { rank: loraRank, seed } };
      const json = await inSession(session, shared, (session_id) => {
        const body = JSON.stringify({ session_id, model_seq_id: session.nextModel(), ...settings });
        const once = !dialect.deduplicates;
        return awaitFuture(http, { path: "/api/v1/create_model", body, headers, ...shared, once });
      });
      const { model_id: modelId } = parseReply(CreateModelReply, json, "create_model");
      const made = () => new TinkerModel({ http, dialect, modelId, fence, storesForSamplers, ...shared });
      if (dialect.inheritsGradient) await dropInherited(made());
      return made();
    },
    adoptModel: ({ modelId, fence, signal }) =>
      new TinkerModel({ http, dialect, modelId, fence, signal, storesForSamplers, outageMs: trainingOutageMs }),
    sampler: ({ samplingSessionId, policyVersion, onWait }) =>
      new TinkerSampler({
        http,
        dialect,
        samplingSessionId,
        policyVersion,
        onWait,
        nextSeqId: () => seqId++,
        outageMs: options.samplingOutageMs ?? 2_000,
      }),
    ...(dialect.extensions ? { score: (options) => score(http, options, trainingOutageMs) } : {}),
    close: async () => {
      session.close();
      await http.close();
    },
  };
}

/**
 * An optimizer step of rate 0 drops what gradient another model left in the new one's place; what that did to the optimizer is undone by
 * loading what was saved before it. These servers do not look at the numbers of requests.
 */
async function dropInherited(model: TinkerModel): Promise<void> {
  const still = { learningRate: 0, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClipNorm: 0 };
  try {
    const { path } = await model.saveWeights("new", 1);
    await model.optimStep(still, { seqId: 2, expectStep: 0 });
    await model.loadWeights(path, { optimizer: true, seqId: 3 });
  } catch (error) {
    // Nobody will know of it: its place is given back, if the server still takes the request.
    await model.unload().catch(() => undefined);
    throw error;
  }
}

/**
 * What the server calls the model. Such a server may take any name and use its own model all the same, so a name that it does not list
 * is refused; a folder that it serves is known by its last part.
 * @throws InputError
 */
async function servedName(http: TinkerHttp, wanted: string, signal: AbortSignal | undefined): Promise<string> {
  const names = (await capabilities(http, signal)).map(({ model_name: name }) => name);
  const lastPart = (name: string) => name.split("/").at(-1);
  const found = names.find((name) => name === wanted) ?? names.find((name) => lastPart(name) === lastPart(wanted));
  if (found !== undefined) return found;
  // Not the whole path: configs and their messages are shown to everyone.
  const served = names.map(lastPart).join(", ") || "nothing";
  throw new InputError([{ path: "model.name", message: `the model server serves ${served}, not ${wanted}` }]);
}

/** A server that restarted has forgotten the session: once more in a new one. */
async function inSession<T>(
  session: TinkerSession,
  { signal, outageMs }: { readonly signal: AbortSignal | undefined; readonly outageMs: number },
  call: (sessionId: string) => Promise<T>,
): Promise<T> {
  const id = await session.id(outageMs, signal);
  try {
    return await call(id);
  } catch (error) {
    if (!isUnknown(error)) throw error;
    await session.forgotten(id);
    return call(await session.id(outageMs, signal));
  }
}

async function workerInfo(http: TinkerHttp, signal: AbortSignal | undefined): Promise<BackendInfo> {
  const json = await http.json({ method: "GET", path: "/ext/v1/info", signal, outageMs: 0, probe: true });
  const info = parseReply(WorkerInfo, json, "info");
  return {
    bootId: info.boot_id,
    device: info.device,
    models: info.base_models.map((model) => ({
      name: model.name,
      parameters: model.parameters,
      maxContextTokens: model.max_context,
    })),
    losses: info.losses,
  };
}

async function workerLoad(http: TinkerHttp, signal: AbortSignal | undefined): Promise<EngineReading> {
  const json = await http.json({ method: "GET", path: "/ext/v1/load", signal, outageMs: 0, probe: true });
  const { running, waiting, cache_use: cacheUse } = parseReply(WorkerLoad, json, "load");
  return { running, waiting, cacheUse };
}

async function score(
  http: TinkerHttp,
  { path, rows, temperature, signal }: Parameters<NonNullable<StepBackend["score"]>>[0],
  outageMs: number,
): Promise<(number | null)[][]> {
  const body = JSON.stringify({ model_path: path, rows, temperature });
  const json = await http.json({ method: "POST", path: "/ext/v1/score", body, signal, outageMs });
  const { logprobs } = parseReply(ScoreReply, json, "score");
  const fits = logprobs.length === rows.length && logprobs.every((own, row) => own.length + 1 === rows[row]?.length);
  if (!fits) throw new BoundaryError("model-server", "bad_answer", "score: the logprobs do not fit the rows");
  return logprobs;
}

/**
 * Servers without boot ids are taken to live as long as their address: that one has lost its models shows at the next request that names
 * one.
 */
async function serverInfo(
  http: TinkerHttp,
  name: string,
  dialect: TinkerDialect,
  signal: AbortSignal | undefined,
): Promise<BackendInfo> {
  return {
    bootId: `tinker@${name}`,
    device: "remote",
    models: (await capabilities(http, signal)).map((model) => ({
      name: model.model_name,
      parameters: 0,
      maxContextTokens: model.max_context_length ?? 0,
    })),
    losses: dialect.losses,
  };
}

async function capabilities(http: TinkerHttp, signal: AbortSignal | undefined) {
  const path = "/api/v1/get_server_capabilities";
  const json = await http.json({ method: "GET", path, signal, outageMs: 0, probe: true });
  return parseReply(Capabilities, json, path).supported_models;
}
