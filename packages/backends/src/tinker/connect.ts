/** A step backend behind a Tinker server: ours, SkyRL's or the hosted service. */
import { randomInt } from "node:crypto";
import type { BackendInfo, EngineReading, StepBackend } from "@rolldeck/contracts/ports/backend";
import { WorkerInfo, WorkerLoad } from "@rolldeck/contracts/wire/tinker";
import { z } from "zod";
import { dialects, type TinkerDialect, type TinkerDialectName } from "./dialects.ts";
import { awaitFuture } from "./future.ts";
import { TinkerHttp } from "./http.ts";
import { fenceHeaders, TinkerModel } from "./model.ts";
import { parseReply } from "./parse-reply.ts";
import { TinkerSampler } from "./sampler.ts";
import { isUnknown, TinkerSession } from "./session.ts";

export interface TinkerOptions {
  readonly url: string;
  readonly apiKey: string | null;
  readonly dialect: TinkerDialectName;
  /** Failures in a row of a training request are waited out this long, milliseconds. Default 60 000. */
  readonly trainingOutageMs?: number;
  /** The same for a sample. Short: whoever samples then looks whether another version serves. Default 2 000. */
  readonly samplingOutageMs?: number;
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
  const trainingOutageMs = options.trainingOutageMs ?? 60_000;
  // Samples are numbered from a random start: several processes may share one sampling session, and gaps are allowed.
  let seqId = randomInt(2 ** 30);
  return {
    info: (signal) => (dialect.extensions ? workerInfo(http, signal) : serverInfo(http, options.url, dialect, signal)),
    ...(dialect.extensions ? { load: (signal) => workerLoad(http, signal) } : {}),
    createModel: async ({ baseModel, seed, fence, signal }) => {
      const shared = { signal, outageMs: trainingOutageMs };
      const headers = fenceHeaders(dialect, fence);
      const settings = { base_model: baseModel, lora_config: { rank: dialect.rank, seed } };
      const json = await inSession(session, shared, (session_id) => {
        const body = JSON.stringify({ session_id, model_seq_id: session.nextModel(), ...settings });
        return awaitFuture(http, { path: "/api/v1/create_model", body, headers, ...shared });
      });
      const { model_id: modelId } = parseReply(CreateModelReply, json, "create_model");
      return new TinkerModel({ http, dialect, modelId, fence, ...shared });
    },
    adoptModel: ({ modelId, fence, signal }) =>
      new TinkerModel({ http, dialect, modelId, fence, signal, outageMs: trainingOutageMs }),
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
    close: async () => {
      session.close();
      await http.close();
    },
  };
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

/** Servers without boot ids are taken to live as long as their address. */
async function serverInfo(
  http: TinkerHttp,
  url: string,
  dialect: TinkerDialect,
  signal: AbortSignal | undefined,
): Promise<BackendInfo> {
  const path = "/api/v1/get_server_capabilities";
  const { supported_models } = parseReply(
    Capabilities,
    await http.json({ method: "GET", path, signal, outageMs: 0, probe: true }),
    path,
  );
  return {
    bootId: new URL(url).host,
    device: "remote",
    models: supported_models.map((model) => ({
      name: model.model_name,
      parameters: 0,
      maxContextTokens: model.max_context_length ?? 0,
    })),
    losses: dialect.losses,
  };
}
