/** Runs that cost seconds: the quickstart policy, few rollouts, few steps. */
import { presets } from "@rolldeck/contracts/presets";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";

/** Two groups of four a step, no warm start: it checks the machinery and learns nothing. */
export function tinyConfig(steps: number): RunConfigInput {
  const { config } = presets.smoke;
  return {
    ...config,
    name: "tiny",
    tags: ["tiny"],
    algorithm: { ...config.algorithm, groupsPerStep: 2, groupSize: 4 },
    checkpoints: { every: 2, keep: 2 },
    budget: { steps },
  };
}

/** A little warm start, so that rollouts differ: some look up too much, which costs a little, and cut ones are trained as well. */
export function learningConfig(steps: number, algorithm: RunConfigInput["algorithm"]): RunConfig {
  const tiny = tinyConfig(steps);
  return RunConfig.parse({
    ...tiny,
    seed: 7,
    model: { name: "quickstart", warmStart: { steps: 45, demosPerStep: 32, learningRate: 4e-3 } },
    agent: { ...tiny.agent, maxTurns: 8, sampling: { temperature: 0.7, maxTokensPerTurn: 32 } },
    algorithm: {
      ...tiny.algorithm,
      groupSize: 6,
      learningRate: 1e-3,
      microBatchTokens: 1024,
      trainCut: true,
      ...algorithm,
    },
    checkpoints: { every: steps, keep: 2 },
  });
}

/** The same as a person writes it. */
export const tinyYaml = (steps: number): string => `
name: tiny
tags: [tiny]
seed: 1
model: { name: quickstart }
taskSets:
  - name: key-chain
agent:
  maxTurns: 4
  maxContextTokens: 256
  describeTools: false
  sampling: { temperature: 1, maxTokensPerTurn: 16 }
algorithm: { groupsPerStep: 2, groupSize: 4, normaliserTokens: 96, learningRate: 3.0e-4 }
checkpoints: { every: 2, keep: 2 }
budget: { steps: ${steps} }
`;
