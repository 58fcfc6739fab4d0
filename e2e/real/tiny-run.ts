/** Runs that cost seconds: the quickstart policy, few rollouts, few steps. */
import { presets } from "@rolldeck/contracts/presets";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";

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
