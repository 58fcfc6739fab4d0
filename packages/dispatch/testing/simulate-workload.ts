/** A workload of `paper-workload` as a simulation's input: one planned run that has the pools to itself. */
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import type { SimulationInput } from "../src/simulator/simulation-input.ts";
import { buildConfig } from "./build-snapshot.ts";
import type { Workload } from "./paper-workload.ts";

export interface WorkloadRun {
  readonly dispatcher: string;
  readonly steps?: number;
  readonly sandbox?: "none" | "image";
  readonly config?: Partial<RunConfigInput>;
}

export function workloadInput(
  workload: Workload,
  { dispatcher, steps = 1, sandbox = workload.sandbox, config = {} }: WorkloadRun,
): SimulationInput {
  const { bounds, stageTimeoutMs, groups, groupSize, pools, work } = workload;
  return {
    config: buildConfig({
      ...config,
      dispatcher: { ...config.dispatcher, name: dispatcher, bounds, stageTimeoutMs },
      algorithm: { ...config.algorithm, groupsPerStep: groups, groupSize },
      budget: { steps },
    }),
    pools,
    work,
    taskSizes: [{ train: groups, evaluate: null }],
    taskSandboxes: [sandbox],
  };
}
