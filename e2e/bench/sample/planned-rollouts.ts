/** What rollouts of the sampling benchmark are given, whoever samples them: no two prompts are equal. */
import { seededRandom } from "@rolldeck/tasks/random";

export interface PlannedRollout {
  readonly prompt: readonly number[];
  /** `observation` comes before the turn's tokens, of which there are at most `maxTokens`. */
  readonly turns: readonly { readonly observation: readonly number[]; readonly maxTokens: number }[];
}

const prompt = { least: 24, most: 64 };
const observationTokens = 17;
const turn = { least: 8, most: 48 };

export function planRollouts(seed: number, count: number, turns: number): PlannedRollout[] {
  const random = seededRandom(`sample ${seed}`);
  const tokens = (length: number) => Array.from({ length }, () => random.integer(0, 255));
  return Array.from({ length: count }, () => ({
    prompt: tokens(random.integer(prompt.least, prompt.most)),
    turns: Array.from({ length: turns }, (_, at) => ({
      observation: at === 0 ? [] : tokens(observationTokens),
      maxTokens: random.integer(turn.least, turn.most),
    })),
  }));
}
