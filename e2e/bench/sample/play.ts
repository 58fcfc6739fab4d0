/** Plays planned rollouts on our GPU worker through the product's own client, all at once: each goes on as soon as its turn is over. */
import { fixedPrompt, type Sampler } from "@rolldeck/contracts/ports/sampler";
import type { PlannedRollout } from "./planned-rollouts.ts";

/** `outputs`: sampled tokens by rollout and turn. */
export interface Played {
  readonly seconds: number;
  readonly outputs: readonly (readonly (readonly number[])[])[];
}

const stopToken = 259;

export async function play(sampler: Sampler, rollouts: readonly PlannedRollout[]): Promise<Played> {
  const startedAt = performance.now();
  const outputs = await Promise.all(rollouts.map((rollout, index) => playOne(sampler, rollout, index)));
  return { seconds: (performance.now() - startedAt) / 1000, outputs };
}

async function playOne(sampler: Sampler, { prompt, turns }: PlannedRollout, index: number): Promise<number[][]> {
  const { signal } = new AbortController();
  const history = [...prompt];
  const outputs: number[][] = [];
  for (const { observation, maxTokens } of turns) {
    history.push(...observation);
    const { tokens } = await sampler.sample(
      {
        affinityKey: `rollout-${index}`,
        prompt: fixedPrompt(history),
        tools: [],
        maxTokens,
        temperature: 0,
        topP: 1,
        topK: -1,
        seed: index,
        stopTokens: [stopToken],
      },
      signal,
    );
    history.push(...tokens);
    outputs.push([...tokens]);
  }
  return outputs;
}

/** @throws at the first turn in which they differ */
export function requireEqual(ours: Played, theirs: Played, how: string): void {
  for (const [rollout, turns] of ours.outputs.entries()) {
    for (const [turn, tokens] of turns.entries()) {
      const others = theirs.outputs[rollout]?.[turn];
      if (others?.join() !== tokens.join())
        throw new Error(`rollout ${rollout}, turn ${turn}: we sampled ${tokens}, transformers ${how} ${others}`);
    }
  }
}

export const tokensPerS = ({ seconds, outputs }: Played): number =>
  outputs.flat().reduce((sum, tokens) => sum + tokens.length, 0) / seconds;
