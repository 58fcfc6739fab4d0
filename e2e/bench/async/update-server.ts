/**
 * A model server whose updates take time, in a process of its own: the scripted worker, and a second port where the time of sampling
 * is spent. Prints {"url","apiKey"} of the former as its first line; ROLLDECK_BENCH_SAMPLING_PORT is the latter's.
 *
 * POST /order {"updateMs","colocated"} sets how long an update takes and whether nothing is sampled meanwhile; POST /run {"ms"} answers
 * after so much time of sampling.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { startScriptedWorker } from "@rolldeck/backends/testing/scripted-worker";
import { z } from "zod";
import { SamplingTime } from "./sampling-time.ts";

const Order = z.object({ updateMs: z.number().min(0), colocated: z.boolean() });
const Run = z.object({ ms: z.number().min(0) });

let order: z.infer<typeof Order> = { updateMs: 0, colocated: false };
const sampling = new SamplingTime();
const scripted = await startScriptedWorker({
  // A call that works, then one that finishes.
  policy: ({ prompt }) => (prompt.includes("<|tool|>") ? '[finish(answer="1")]' : '[echo(text="work")]'),
  updateMs: () => order.updateMs,
  onUpdate: (underWay) => sampling.halt(underWay && order.colocated),
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const body: unknown = JSON.parse(Buffer.concat(parts).toString());
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  if (request.url === "/order") order = Order.parse(body);
  else await sampling.pass(Run.parse(body).ms, gone.signal);
  response.end("{}");
}

const server = createServer({ keepAlive: true, keepAliveTimeout: 60_000 }, (request, response) => {
  answer(request, response).catch((error: unknown) => {
    if (!response.destroyed) response.writeHead(500).end(String(error));
  });
});
server.listen(Number(process.env.ROLLDECK_BENCH_SAMPLING_PORT), "127.0.0.1", 2048, () => {
  process.stdout.write(`${JSON.stringify({ url: scripted.url, apiKey: scripted.apiKey })}\n`);
});
process.once("SIGTERM", () => process.exit(0));
