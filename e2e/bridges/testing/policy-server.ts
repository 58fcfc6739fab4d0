/**
 * Where SkyRL's engines would answer: /v1/completions over real HTTP, sampled by our GPU worker with the version that the trainer
 * synced last. Most rollouts of a version can be made slow.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { type CompletionServer, startCompletionServer } from "@rolldeck/backends/testing/completion-server";
import { z } from "zod";
import type { StartedGpuWorker } from "../../stack/started-gpu-worker.ts";

const Sample = z.object({
  sequences: z.array(z.object({ tokens: z.array(z.int()), logprobs: z.array(z.number()), stop_reason: z.string() })),
});

export interface PolicyServer extends Pick<CompletionServer, "url" | "close"> {
  /** Every answer of this version takes so long but those of the first `quick` rollouts that ask; null: none does. */
  slow: { readonly version: number; readonly delayMs: number; readonly quick: number } | null;
}

/** @param served folder with one folder per version, `policy-<version>`, and the file `serving` */
export async function startPolicyServer(worker: StartedGpuWorker, served: string): Promise<PolicyServer> {
  const policy: Pick<PolicyServer, "slow"> = { slow: null };
  const quickOnes = new Set<string>();
  const delayOf = (version: string, rollout: string): number => {
    const { slow } = policy;
    if (slow === null || version !== String(slow.version)) return 0;
    if (quickOnes.size < slow.quick) quickOnes.add(rollout);
    return quickOnes.has(rollout) ? 0 : slow.delayMs;
  };
  const server = await startCompletionServer({
    answer: async (ask) => {
      const version = readFileSync(path.join(served, "serving"), "utf8");
      const delayMs = delayOf(version, ask.affinityKey);
      const { stop_token_ids: stop, temperature, top_p, seed } = ask.body;
      const sampling_params = { max_tokens: ask.maxTokens, temperature, top_p, seed, stop };
      const prompt = { chunks: [{ type: "encoded_text", tokens: ask.promptTokens() }] };
      const reply = await fetch(`${worker.url}/ext/v1/sample`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": worker.apiKey },
        body: JSON.stringify({ base_model: `policy-${version}`, prompt, num_samples: 1, sampling_params }),
      });
      if (!reply.ok) return { status: 500, body: { error: { message: await reply.text() } } };
      const [sampled] = Sample.parse(await reply.json()).sequences;
      if (sampled === undefined) throw new TypeError("the worker sampled nothing");
      return { tokens: sampled.tokens, logprobs: sampled.logprobs, finishReason: sampled.stop_reason, delayMs };
    },
  });
  return Object.assign(policy, { url: server.url, close: () => server.close() });
}
