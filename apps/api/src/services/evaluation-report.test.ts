/** Which instances two runs share: a name alone does not make them the same. */
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import type { RunEvaluations } from "@rolldeck/db/reads/read-evaluation";
import { describe, expect, test } from "vitest";
import { evaluationReport } from "./evaluation-report.ts";

/** Each task set gives the instances evaluate-0 to evaluate-3, all with the same score. */
function measured(taskSets: RunConfigInput["taskSets"], scores: readonly number[]): RunEvaluations {
  const config = RunConfig.parse({ kind: "evaluate", taskSets, evaluation: { samples: 4 } });
  const instances = config.taskSets.flatMap(({ name }, taskSet) =>
    [0, 1, 2, 3].map((index) => ({
      taskSet,
      task: name,
      instanceId: `evaluate-${index}`,
      rollouts: 1,
      settled: 1,
      rewards: [scores[taskSet] ?? 0],
      successes: [scores[taskSet] === 1],
    })),
  );
  return {
    runId: "r",
    name: "run",
    config,
    evaluations: [{ stepId: "s", version: 0, state: "done", instances }],
  };
}
const a = { name: "memory", dataset: "a.jsonl" };
const b = { name: "memory", dataset: "b.jsonl" };

describe("a comparison with a baseline", () => {
  test("pairs nothing of another data set, though the instances have the same names", () => {
    expect(evaluationReport(measured([a], [1]), measured([b], [0])).baseline).toMatchObject({
      success: null,
      reward: null,
    });
  });
  test("pairs nothing where options hold out other rows or score them otherwise", () => {
    const every = (heldOutEvery: number) => ({ ...a, options: { heldOutEvery } });
    expect(evaluationReport(measured([every(5)], [1]), measured([every(10)], [0])).baseline?.success).toBeNull();
    expect(evaluationReport(measured([every(5)], [1]), measured([every(5)], [0])).baseline?.success?.pairs).toBe(4);
  });
  test("pairs each data set of a run with its own, wherever it stands", () => {
    const { baseline } = evaluationReport(measured([a, b], [1, 0]), measured([b, a], [0, 0]));
    expect(baseline?.success).toMatchObject({ pairs: 8, difference: 0.5 });
  });
  test("does not mind the order of options", () => {
    const ours = { ...a, options: { heldOutEvery: 2, maxChunkTokens: 100 } };
    const theirs = { ...a, options: { maxChunkTokens: 100, heldOutEvery: 2 } };
    expect(evaluationReport(measured([ours], [1]), measured([theirs], [0])).baseline?.success?.pairs).toBe(4);
  });
});
