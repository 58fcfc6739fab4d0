/**
 * A completion server without a model: /v1/completions, vLLM's /inference/v1/generate, /v1/chat/completions and /v1/models over
 * real HTTP, with what a script answers, at once. In the process of a test, or as a process of its own:
 *
 *   tsx packages/backends/testing/completion-server.ts [--port 0] [--script answers.json]
 *
 * prints `{"url":…}` as its first line and ends with its standard input or a SIGTERM. The script file is a JSON array of answers;
 * request n of an affinity key (header `x-rolldeck-affinity`) gets answer n, from the start again after the last.
 */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { type CompletionAnswer, type SampledAnswer, streamedAnswer, wholeAnswer } from "./completion/answer.ts";
import { type CompletionAsk, completionPath, readAsk } from "./completion/read-ask.ts";

export type { CompletionAnswer, SampledAnswer } from "./completion/answer.ts";
export type { CompletionAsk } from "./completion/read-ask.ts";

export type AnswerScript = (ask: CompletionAsk) => CompletionAnswer | Promise<CompletionAnswer>;
export interface CompletionServerOptions {
  readonly answer: AnswerScript;
  readonly port?: number;
  /** Bearer keys it takes; default any or none. */
  readonly keys?: readonly string[];
  /** What GET /v1/models answers; default a list of one. */
  readonly models?: () => CompletionAnswer;
  /** What GET /metrics answers, in Prometheus' text, by the requests under way; default: there is none. */
  readonly metrics?: (waiting: number) => string;
}
export interface CompletionServer {
  readonly url: string;
  /** Newest last, at most 1,000; without their prompts' ids when they were never asked for. */
  readonly asks: readonly CompletionAsk[];
  readonly stats: { readonly requests: number; readonly cancelled: number; readonly waiting: number };
  close(): Promise<void>;
}

const keptAsks = 1_000;

export async function startCompletionServer(options: CompletionServerOptions): Promise<CompletionServer> {
  const asks: CompletionAsk[] = [];
  const stats = { requests: 0, cancelled: 0, waiting: 0 };
  const turns = new Map<string, number>();
  const nextTurn = (key: string): number => {
    const turn = turns.get(key) ?? 0;
    turns.set(key, turn + 1);
    return turn;
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const path = new URL(request.url ?? "/", "http://server").pathname;
    if (!authorised(request, options.keys)) return refuse(response, 401, "invalid api key");
    if (path === "/v1/models") return answerModels(response, options.models);
    if (path === "/metrics" && options.metrics !== undefined)
      return send(response, 200, { "content-type": "text/plain; version=0.0.4" }, options.metrics(stats.waiting));
    const kind = completionPath(path);
    if (kind === undefined) return refuse(response, 404, `no route ${path}`);
    stats.requests++;
    const ask = readAsk(kind, request, Buffer.concat(parts), nextTurn);
    if (asks.push(ask) > keptAsks) asks.shift();
    stats.waiting++;
    response.once("close", () => {
      stats.waiting--;
      if (!response.writableFinished) stats.cancelled++;
    });
    await respond(response, ask, await options.answer(ask));
  };
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveTimeout: 60_000 }, (request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent || response.destroyed) response.destroy();
      else refuse(response, 400, String(error));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", 2048, resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asks,
    stats,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const authorised = (request: IncomingMessage, keys: readonly string[] | undefined): boolean =>
  keys === undefined || keys.some((key) => request.headers.authorization === `Bearer ${key}`);

function answerModels(response: ServerResponse, models: CompletionServerOptions["models"]): void | Promise<void> {
  const answer = models?.() ?? {
    status: 200,
    body: { object: "list", data: [{ id: "scripted", max_model_len: 4096 }] },
  };
  return breakOff(response, answer);
}

async function respond(response: ServerResponse, ask: CompletionAsk, answer: CompletionAnswer): Promise<void> {
  if ("status" in answer || "hang" in answer || "reset" in answer || "partial" in answer)
    return breakOff(response, answer);
  if (answer.delayMs) await new Promise((resolve) => setTimeout(resolve, answer.delayMs));
  if (response.destroyed) return;
  if (ask.stream) return stream(response, streamedAnswer(ask, answer), answer.dieAfter);
  const text = wholeAnswer(ask, answer);
  send(response, 200, { "content-type": "application/json" }, text);
}

async function stream(
  response: ServerResponse,
  chunks: readonly unknown[],
  dieAfter = Number.POSITIVE_INFINITY,
): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const [at, chunk] of chunks.entries()) {
    if (at >= dieAfter) break;
    // A chunk given as text is sent as it is, mistakes included.
    response.write(typeof chunk === "string" ? chunk : `data: ${JSON.stringify(chunk)}\n\n`);
  }
  if (chunks.length < dieAfter) {
    response.end("data: [DONE]\n\n");
    return;
  }
  await new Promise((resolve) => setTimeout(resolve, 5));
  response.destroy();
}

async function breakOff(response: ServerResponse, answer: CompletionAnswer): Promise<void> {
  if ("reset" in answer) {
    response.destroy();
  } else if ("partial" in answer) {
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": String(answer.partial.length + 100),
    });
    response.write(answer.partial);
    await new Promise((resolve) => setTimeout(resolve, 5));
    response.destroy();
  } else if ("status" in answer) {
    const text = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body ?? {});
    send(response, answer.status, { "content-type": "application/json", ...answer.headers }, text);
  }
}

const refuse = (response: ServerResponse, status: number, message: string): void =>
  send(response, status, { "content-type": "application/json" }, JSON.stringify({ error: { message, code: status } }));

function send(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>, text: string): void {
  response.writeHead(status, { ...headers, "content-length": String(Buffer.byteLength(text)) });
  response.end(text);
}

/** Answers by turn of each affinity key, round and round. */
export const answersInTurn =
  (answers: readonly SampledAnswer[]): AnswerScript =>
  ({ turn }) =>
    answers[turn % answers.length] ?? { tokens: [] };

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { port: { type: "string", default: "0" }, script: { type: "string" } } });
  const answers: SampledAnswer[] =
    values.script === undefined ? [{ tokens: [1], content: "ok" }] : JSON.parse(readFileSync(values.script, "utf8"));
  const server = await startCompletionServer({ answer: answersInTurn(answers), port: Number(values.port) });
  process.stdout.write(`${JSON.stringify({ url: server.url })}\n`);
  const end = () => void server.close().then(() => process.exit(0));
  process.on("SIGTERM", end);
  process.stdin.on("end", end).resume();
}

if (process.argv[1] === import.meta.filename) await main();
