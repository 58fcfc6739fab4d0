/**
 * A GPU worker without a GPU, a network or Python: the whole wire of the real one over real HTTP, with a scripted policy behind
 * it. For tests of everything that talks to a worker, kills it, or must survive it.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { WorkerLoad } from "@rolldeck/contracts/wire/tinker";
import { type Failure, Failures } from "./scripted/failures.ts";
import { Refusal } from "./scripted/refusal.ts";
import { routes } from "./scripted/routes.ts";
import type { Policy } from "./scripted/sampling.ts";
import { newState, type ScriptedState, streaming } from "./scripted/state.ts";

export { keyChainPolicy, type Policy } from "./scripted/sampling.ts";

export interface ScriptedWorkerOptions {
  /** Default: follows the key chain without mistakes. */
  readonly policy?: Policy;
  /** Time from a sample request to its answer, milliseconds. Default 0: an instant engine. */
  readonly delayMs?: number;
  /** Futures say `try_again` for this long. Default 0. */
  readonly futureMs?: number;
  /** What saving a checkpoint takes beside, milliseconds. Default 0. */
  readonly saveMs?: number;
  /** From an update's first training request to its optimizer step's result, milliseconds, asked at the step. Default: no time. */
  readonly updateMs?: () => number;
  /** Hears when such an update begins and when its time is over. */
  readonly onUpdate?: (underWay: boolean) => void;
  /** Speaks the protocol as SkyRL's server does, without extensions, journal, fences and boot id. Default false. */
  readonly foreign?: boolean;
  /** How long a training request waits for the one before it. Default 5000. */
  readonly gapMs?: number;
  /** What its engine bears under so many samples in flight. Default: it works on all of them, and its cache stays empty. */
  readonly load?: (samples: number) => WorkerLoad;
  readonly apiKey?: string;
  /** Address that it listens on. Default 127.0.0.1. */
  readonly host?: string;
  readonly port?: number;
}
export interface ScriptedStats {
  /** Requests by path. */
  readonly requests: ReadonlyMap<string, number>;
  readonly samples: number;
  /** Sample requests whose connection closed before the answer. */
  readonly cancelled: number;
  readonly waiting: number;
  readonly mostWaiting: number;
  readonly heartbeats: number;
  /** Foreign: samples of a session whose model has gone on; on SkyRL's server they would have put older weights into it. */
  readonly outdated: number;
}
export interface ScriptedWorker {
  readonly url: string;
  readonly apiKey: string;
  readonly bootId: string;
  readonly stats: ScriptedStats;
  /** Models that live now, with the digest that stands for their weights. */
  models(): { readonly modelId: string; readonly step: number; readonly digest: string; readonly lastSeqId: number }[];
  /** Paths of the checkpoints on its disk, in the order they were saved. */
  checkpoints(): string[];
  fail(failure: Failure): void;
  /** As after kill −9 and a start: connections cut, models and sessions gone, checkpoints there, another boot id. */
  restart(options?: { readonly downMs?: number }): Promise<void>;
  /** Models and sampling sessions are gone without a new boot, as after their session fell silent. */
  forget(): void;
  /** Its disk is wiped: no checkpoint is left. */
  loseCheckpoints(): void;
  /** Cuts every connection and answers nobody until `resume`. Memory is kept. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

export async function startScriptedWorker(options: ScriptedWorkerOptions = {}): Promise<ScriptedWorker> {
  const apiKey = options.apiKey ?? "tml-scripted";
  const failures = new Failures();
  const state = newState(options);
  const host = options.host ?? "127.0.0.1";
  let server = await listen(handler(state, failures, apiKey), host, options.port ?? 0);
  const port = (server.address() as AddressInfo).port;
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const start = async (): Promise<void> => {
    server = await listen(handler(state, failures, apiKey), host, port);
  };
  return {
    url: `http://127.0.0.1:${port}`,
    apiKey,
    get bootId() {
      return state.bootId;
    },
    stats: state.counters,
    models: () =>
      [...state.store.models.values()].map(({ modelId, step, digest, lastSeqId }) => ({
        modelId,
        step,
        digest,
        lastSeqId,
      })),
    checkpoints: () => [...state.store.checkpoints.keys()],
    fail: (failure) => failures.order(failure),
    restart: async ({ downMs = 0 } = {}) => {
      await stop();
      state.store.restart();
      if (options.foreign !== true) state.sessions.clear();
      state.futureReadyAt.clear();
      state.bootId = randomUUID();
      await new Promise((resolve) => setTimeout(resolve, downMs));
      await start();
    },
    forget: () => state.store.restart(),
    loseCheckpoints: () => state.store.checkpoints.clear(),
    pause: stop,
    resume: start,
    close: stop,
  };
}

function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  host: string,
  port: number,
): Promise<Server> {
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveTimeout: 60_000 }, handle);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, 2048, () => resolve(server));
  });
}

function handler(state: ScriptedState, failures: Failures, apiKey: string) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = new URL(request.url ?? "/", "http://worker").pathname;
    state.counters.requests.set(path, (state.counters.requests.get(path) ?? 0) + 1);
    const failure = failures.next(path);
    if (failure && failure.kind !== "lost-answer") return failNow(failure, request, response, state);
    try {
      const body = await readBody(request);
      if (request.headers["x-api-key"] !== apiKey) throw new Refusal("unauthorised", "the API key is missing or wrong");
      const answer = await routes(state, request, response, path, body);
      if (failure) request.socket.destroy();
      else if (answer !== streaming) send(response, 200, answer);
    } catch (error) {
      // Other servers have no codes of ours.
      if (error instanceof Refusal) {
        send(response, error.status, state.store.foreign ? { detail: error.message } : error.body);
      } else send(response, 500, { detail: String(error), code: "internal", field: null });
    }
  };
}

function failNow(failure: Failure, request: IncomingMessage, response: ServerResponse, state: ScriptedState): void {
  const headers: Record<string, string> = failure.retryAfter === undefined ? {} : { "retry-after": failure.retryAfter };
  if (failure.kind === "reset") request.socket.destroy();
  else if (failure.kind === "error") send(response, 500, { detail: "ordered", code: "internal", field: null }, headers);
  else if (failure.kind === "busy") send(response, 429, { detail: "ordered", code: "busy", field: null }, headers);
  else if (failure.kind === "lost-future") send(response, 410, { detail: "ordered" });
  else if (failure.kind === "answer") response.writeHead(failure.status ?? 200, headers).end(failure.text ?? "");
  // hang: the connection stays open and silent.
  else request.socket.once("close", () => state.counters.cancelled++);
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  if (response.destroyed || response.headersSent) return;
  const text = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "content-type": "application/json", "content-length": text.length, ...headers });
  response.end(text);
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  if (parts.length === 0) return {};
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw new Refusal("bad_input", "the body is not JSON");
  }
}
