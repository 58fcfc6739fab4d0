/** A GPU worker's disk behind the part of its wire that the API reads: files to be exported, whole, cut, changed or gone. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { tarEntry } from "../src/services/tar-entry.ts";

export type StoredState = "whole" | "gone" | "damaged" | "changed on the way" | "cut on the way";

export interface StoredFiles {
  readonly url: string;
  readonly apiKey: string;
  /** What happens to whoever reads a checkpoint from now on. */
  state: StoredState;
  /** Paths that were asked for. */
  readonly asked: string[];
  /** Bodies of samples that were asked for; each is answered with "hi" and the end of a turn. */
  readonly samples: unknown[];
  /** Samples wait for it before they are answered; null = none does. */
  held: Promise<void> | null;
  /** A sample that is told as it is made waits for it after its first token; then it ends, or the worker gives it up. */
  afterFirst: Promise<"go on" | "give up"> | null;
  /** Samples whose connection closed before their end. */
  left: number;
  close(): Promise<void>;
}

/** Content of model.safetensors, and of adapter_model.safetensors. */
export const weights = "the weights ".repeat(20_000);

/** @param apiKey of a run's worker on the fleet, where it stands for one */
export async function startStoredFiles(apiKey = "tml-stored-files"): Promise<StoredFiles> {
  const tarOf = (name: string) => Buffer.concat([tarEntry(name, weights), Buffer.alloc(1024)]);
  const stored = {
    state: "whole" as StoredState,
    asked: [] as string[],
    samples: [] as unknown[],
    held: null as Promise<void> | null,
    afterFirst: null as Promise<"go on" | "give up"> | null,
    left: 0,
  };
  const server = createServer((request, response) => {
    if (request.headers["x-api-key"] !== apiKey) return refuse(response, 401, "unauthorised", "no key");
    if (request.url === "/ext/v1/info") return void response.end('{"boot_id":"stored-files"}');
    stored.asked.push(request.url ?? "");
    if (stored.state === "gone") return refuse(response, 404, "unknown_model", "no complete checkpoint");
    if (stored.state === "damaged")
      return refuse(response, 409, "conflict", "checkpoint x is damaged: model.safetensors");
    if (request.url === "/ext/v1/sample") return void sample(request, response, stored);
    if (request.url?.endsWith("/verify")) return void response.end("{}");
    const tar = tarOf(request.url?.endsWith("format=peft") ? "adapter_model.safetensors" : "model.safetensors");
    const sha256 = createHash("sha256").update(tar).digest("hex");
    response.writeHead(200, { "content-length": tar.length, "x-content-sha256": sha256 });
    if (stored.state === "cut on the way")
      return void response.write(tar.subarray(0, 100_000), () => response.destroy());
    const sent = Buffer.from(tar);
    if (stored.state === "changed on the way") sent[1000] = 0;
    response.end(sent);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(stored, {
    url: `http://127.0.0.1:${port}`,
    apiKey,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

/** Of the quickstart policy: "hi", then the end of a turn. */
export const answerTokens = [104, 105, 259];
export const answerLogprobs = [-0.1, -0.2, -0.3];

async function sample(
  request: IncomingMessage,
  response: ServerResponse,
  stored: Pick<StoredFiles, "samples" | "held" | "afterFirst" | "left">,
): Promise<void> {
  const asked: unknown = JSON.parse(await text(request));
  stored.samples.push(asked);
  await stored.held;
  if (typeof asked === "object" && asked !== null && "stream" in asked) return told(response, stored);
  const sequence = { stop_reason: "stop", tokens: answerTokens, logprobs: answerLogprobs };
  response.end(JSON.stringify({ sequences: [sequence], weight_version: 2 }));
}

/** Its first token, and after that the others and the end. */
async function told(response: ServerResponse, stored: Pick<StoredFiles, "afterFirst" | "left">): Promise<void> {
  response.once("close", () => {
    if (!response.writableFinished) stored.left++;
  });
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  const line = (value: object) => response.write(`${JSON.stringify(value)}\n`);
  const news = (from: number, to: number) => ({
    sample: 0,
    tokens: answerTokens.slice(from, to),
    logprobs: answerLogprobs.slice(from, to),
  });
  line(news(0, 1));
  if ((await stored.afterFirst) === "give up")
    return void response.end(`${JSON.stringify({ error: { detail: "out of memory", code: "oom", field: null } })}\n`);
  line(news(1, 3));
  response.end(`${JSON.stringify({ stop_reasons: ["stop"], weight_version: 2 })}\n`);
}

function refuse(response: ServerResponse, status: number, code: string, detail: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ detail, code, field: null }));
}
