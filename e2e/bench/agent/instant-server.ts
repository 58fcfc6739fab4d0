/**
 * A completion server without a model, in a process of its own: answers a sample request at once, by the turn that its rollout has
 * reached, and never looks at the prompt, so that what is measured is the other side. Everything else of the wire (models,
 * sessions) is the scripted worker's. Turns may be held: their requests wait until all have come, then go on together.
 *
 * Prints {"url","apiKey"} as its first line. POST /bench {"turns", "hold": [turn, …]} begins anew; GET /bench says how many wait at
 * each held turn; POST /bench/release lets them go.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { encodeBytes, endToken } from "@rolldeck/backends/testing/scripted/vocabulary";
import { startScriptedWorker } from "@rolldeck/backends/testing/scripted-worker";
import { z } from "zod";

/** Of a turn, its end token among them. */
const sampledTokens = 41;

const Order = z.object({ turns: z.int(), hold: z.array(z.int()) });
const Affinity = z.string();

const turnOf = new Map<string, number>();
let order: z.infer<typeof Order> = { turns: 20, hold: [] };
const held = new Map<number, (() => void)[]>();
const released = new Set<number>();

/** Turns differ, as a policy's would: the same call again and again is a loop. */
function answerOf(turn: number): string {
  const last = turn >= order.turns - 1;
  const text = last
    ? `[finish(answer="${turn}")]`
    : `[echo(text="look at ${String(turn).padEnd(sampledTokens - 25)}")]`;
  const tokens = [...encodeBytes(text), endToken];
  return JSON.stringify({
    sequences: [{ stop_reason: "stop", tokens, logprobs: tokens.map((token) => -token / 1024) }],
    weight_version: 0,
    prompt_cache_hit_tokens: 0,
  });
}
const answers = new Map<number, string>();

function sample(request: IncomingMessage, response: ServerResponse): void {
  const key = Affinity.parse(request.headers["x-rolldeck-affinity"]);
  request.resume();
  request.once("end", () => {
    const turn = turnOf.get(key) ?? 0;
    turnOf.set(key, turn + 1);
    const answer = answers.get(turn) ?? answerOf(turn);
    answers.set(turn, answer);
    const reply = () => {
      response.writeHead(200, { "content-type": "application/json", "content-length": answer.length });
      response.end(answer);
    };
    if (!order.hold.includes(turn) || released.has(turn)) reply();
    else held.set(turn, [...(held.get(turn) ?? []), reply]);
  });
}

async function bench(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const text = Buffer.concat(parts).toString();
  if (request.method === "POST" && request.url === "/bench") {
    order = Order.parse(JSON.parse(text));
    for (const state of [turnOf, held, released, answers]) state.clear();
  }
  if (request.url === "/bench/release") {
    const waiting = [...held];
    held.clear();
    for (const [turn, replies] of waiting) {
      released.add(turn);
      for (const reply of replies) reply();
    }
  }
  response.end(JSON.stringify(Object.fromEntries([...held].map(([turn, replies]) => [turn, replies.length]))));
}

const scripted = await startScriptedWorker();
const server = createServer({ noDelay: true, keepAlive: true, keepAliveTimeout: 60_000 }, (request, response) => {
  if (request.url === "/ext/v1/sample") return sample(request, response);
  const handled = request.url?.startsWith("/bench") ? bench(request, response) : forward(request, response);
  handled.catch((error: unknown) => {
    response.writeHead(500).end(String(error));
  });
});

async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const answer = await fetch(new URL(request.url ?? "/", scripted.url), {
    method: request.method ?? "GET",
    headers: { "x-api-key": scripted.apiKey, "content-type": "application/json" },
    ...(parts.length === 0 ? {} : { body: Buffer.concat(parts) }),
  });
  const body = Buffer.from(await answer.arrayBuffer());
  response.writeHead(answer.status, { "content-type": "application/json", "content-length": body.length }).end(body);
}

server.listen(0, "127.0.0.1", 2048, () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}`, apiKey: scripted.apiKey })}\n`);
});
process.once("SIGTERM", () => process.exit(0));
