import { presets } from "@rolldeck/contracts/presets";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { describe, expect, test } from "vitest";
import { buildConfig } from "../testing/build-snapshot.ts";
import { estimate } from "./estimate.ts";

describe("estimate", () => {
  test("counts steps and evaluations, with the context as the rollout's limit", () => {
    const config = RunConfig.parse({ ...presets.quickstart.config, budget: { steps: 45 } });
    expect(estimate(config)).toEqual({
      rollouts: 45 * 16 * 8 + 2 * 256,
      maxSampledTokens: String((45 * 16 * 8 + 2 * 256) * 8 * 32),
      basis: "45 steps × 16 groups × 8 rollouts + 2 evaluations × 256 rollouts, at most 256 sampled tokens each",
    });
  });

  test.each([
    [
      "on every second of five steps and at the end",
      { evaluation: { samples: 1, every: 2 }, budget: { steps: 5 } },
      24,
    ],
    ["every step", { evaluation: { samples: 1, every: 1 }, budget: { steps: 5 } }, 26],
    ["none", { budget: { steps: 5 } }, 20],
    ["an evaluation run", { kind: "evaluate" as const, evaluation: { samples: 7 } }, 7],
    ["several of each instance", { kind: "evaluate" as const, evaluation: { samples: 7, samplesPerInstance: 4 } }, 28],
    ["a driven run has no evaluations of its own", { stepSource: "driven" as const, evaluation: { samples: 7 } }, 12],
  ])("evaluations: %s", (_, input, rollouts) => {
    expect(estimate(buildConfig(input)).rollouts).toBe(rollouts);
  });

  test("counts what is started in excess and what may be replaced, but for an outside trainer, who names its own", () => {
    const dispatcher = {
      overSample: { groups: 1, rollouts: 2 },
      zeroVariance: { mode: "replace" as const, maxReplaced: 3 },
    };
    expect(estimate(buildConfig({ dispatcher })).rollouts).toBe(3 * (2 + 1 + 3) * (2 + 2));
    expect(estimate(buildConfig({ dispatcher, stepSource: "driven" })).rollouts).toBe(12);
  });

  test("turns bound what a rollout samples, and the budget of tokens bounds the run", () => {
    const agent = { maxTurns: 3, sampling: { maxTokensPerTurn: 10 } };
    const sets = [{ name: "a" }, { name: "b", maxTurns: 5 }];
    expect(estimate(buildConfig({ agent, taskSets: sets })).maxSampledTokens).toBe(String(12 * 50));
    const { maxSampledTokens, basis } = estimate(buildConfig({ agent, budget: { steps: 3, tokens: 100 } }));
    expect(maxSampledTokens).toBe("100");
    expect(basis).toContain("the budget ends the run at 100 tokens");
  });

  test("stays exact past 2^53", () => {
    const big = buildConfig({
      agent: { maxTurns: 1000, maxContextTokens: 1_048_576, sampling: { maxTokensPerTurn: 131_072 } },
      algorithm: { groupsPerStep: 4096, groupSize: 256 },
      budget: { steps: 1_000_000 },
    });
    expect(estimate(big).maxSampledTokens).toBe("137438953472000000000");
  });
});
