/** Rollouts long enough to be killed in their midst: a policy that looks up `turns` keys, one per turn, and then answers. */
import type { Policy } from "@rolldeck/backends/testing/scripted-worker";
import { presets } from "@rolldeck/contracts/presets";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";

/** Counts first model calls: each beyond one per attempt is a rollout that began again. */
export function longPolicy(turns: number): { readonly policy: Policy; firstCalls(): number } {
  let first = 0;
  return {
    policy: ({ prompt }) => {
      const done = prompt.split("<|tool|>").length - 1;
      if (done === 0) first++;
      // Never the same call twice in a row, or the rollout would end as a loop.
      if (done < turns) return `[get(k="${String.fromCharCode(97 + (done % 26))}")]`;
      return '[finish(answer="1")]';
    },
    firstCalls: () => first,
  };
}

/** `groups` × 8 rollouts a step, all of them at once. */
export function longConfig(groups: number, steps: number): RunConfigInput {
  const { config } = presets.smoke;
  return {
    ...config,
    tags: [],
    taskSets: [{ name: "key-chain", maxTurns: 40 }],
    agent: { ...config.agent, maxContextTokens: 2_048, sampling: { temperature: 1, maxTokensPerTurn: 32 } },
    dispatcher: { name: "batch", bounds: { init: 64, run: 64, evaluate: 64 } },
    algorithm: { ...config.algorithm, groupsPerStep: groups, groupSize: 8, filterZeroVariance: false },
    checkpoints: { every: 2, keep: 3 },
    budget: { steps },
  };
}
