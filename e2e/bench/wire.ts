/**
 * The sampling wire with an instant engine: what a turn costs in HTTP, JSON and scheduling alone, at 16, 128 and 512 waiting
 * requests. The client is the product's own, the server our GPU worker with `--instant-engine`; `--scripted` puts the scripted
 * Node worker in its place. Flags: --scripted, --seconds <n> (per level, default 5).
 */

import { parseArgs } from "node:util";
import { startScriptedWorker } from "@rolldeck/backends/testing/scripted-worker";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import type { Sampler } from "@rolldeck/contracts/ports/sampler";
import { fixedPrompt } from "@rolldeck/contracts/ports/sampler";
import { startGpuWorker } from "../stack/started-gpu-worker.ts";
import { quantile } from "./quantile.ts";

const levels = [16, 128, 512] as const;
const warmUpS = 1;

interface Level {
  readonly turnsPerS: number;
  readonly p99Ms: number;
}

export async function run(args: string[], progress: (line: string) => void): Promise<Record<string, Level>> {
  const { values } = parseArgs({
    args,
    options: { scripted: { type: "boolean", default: false }, seconds: { type: "string", default: "5" } },
  });
  const seconds = Number(values.seconds);
  if (!(seconds > 0)) throw new Error("--seconds takes a number above 0");
  const server = values.scripted ? await scripted() : await startGpuWorker({ flags: ["--instant-engine"], progress });
  const backend = connectTinker({ url: server.url, apiKey: server.apiKey, dialect: "rolldeck" });
  try {
    const fence = { runId: "wire-bench", token: 1 };
    const model = await backend.createModel({ baseModel: "quickstart", seed: 1, fence });
    const sampler = backend.sampler(await model.saveWeightsForSampler(1));
    const result: Record<string, Level> = {};
    for (const waiting of levels) {
      await measure(sampler, waiting, warmUpS);
      result[waiting] = await measure(sampler, waiting, seconds);
      progress(`${waiting} waiting: ${JSON.stringify(result[waiting])}`);
    }
    return result;
  } finally {
    await backend.close();
    await server.stop();
  }
}

/** `waiting` clients that each send the next turn when the last one is answered. */
async function measure(sampler: Sampler, waiting: number, seconds: number): Promise<Level> {
  const latenciesMs: number[] = [];
  const endsAt = performance.now() + seconds * 1000;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: waiting }, async (_, client) => {
      // One signal per rollout, as in the product.
      const { signal } = new AbortController();
      for (let turn = 0; performance.now() < endsAt; turn++) {
        const sentAt = performance.now();
        await sampler.sample(request(client, turn), signal);
        latenciesMs.push(performance.now() - sentAt);
      }
    }),
  );
  const elapsedS = (performance.now() - startedAt) / 1000;
  const p99Ms = quantile(latenciesMs, 0.99);
  return { turnsPerS: Math.round(latenciesMs.length / elapsedS), p99Ms: Math.round(p99Ms * 100) / 100 };
}

/** Prompts grow by a turn's tokens up to four turns, as in the quickstart task. */
function request(client: number, turn: number) {
  return {
    affinityKey: `client-${client}`,
    prompt: fixedPrompt(Array.from({ length: 9 + 17 * (turn % 5) }, (_, at) => (client + at) % 256)),
    tools: [],
    maxTokens: 32,
    temperature: 0.7,
    topP: 1,
    topK: -1,
    seed: client,
    stopTokens: [259],
  };
}

async function scripted() {
  const worker = await startScriptedWorker();
  return { url: worker.url, apiKey: worker.apiKey, stop: () => worker.close() };
}
