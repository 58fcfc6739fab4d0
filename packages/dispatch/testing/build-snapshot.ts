/** Snapshots for tests: a plain running train run, and rollouts and steps with every field overridable. */
import type {
  GroupSnapshot,
  ResourceCounts,
  RolloutSnapshot,
  RunSnapshot,
  StepSnapshot,
} from "@rolldeck/contracts/plan";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";

export const counts = (each: number): ResourceCounts => ({
  sandbox: each,
  initSlot: each,
  runSlot: each,
  gradeSlot: each,
  gpu: each,
});

/** Two groups of two rollouts for three steps, unless the input says otherwise. */
export const buildConfig = (input: Partial<RunConfigInput> = {}): RunConfig =>
  RunConfig.parse({
    taskSets: [{ name: "task" }],
    algorithm: { groupsPerStep: 2, groupSize: 2 },
    budget: { steps: 3 },
    ...input,
  });

export const buildSnapshot = (over: Partial<RunSnapshot> = {}): RunSnapshot => ({
  now: 1_000_000,
  runId: "run",
  status: "running",
  config: buildConfig(),
  servingVersion: 0,
  modelBootId: "boot-1",
  backendBootId: "boot-1",
  prepareLeaseUntil: null,
  prepareFailures: 0,
  startedAt: 900_000,
  sampledTokens: 0,
  taskSizes: [{ train: null, evaluate: null }],
  taskSandboxes: ["none"],
  steps: [],
  rollouts: [],
  batchRequests: [],
  trainerLeaseUntil: null,
  held: counts(0),
  ...over,
});

export const buildStep = (over: Partial<StepSnapshot> = {}): StepSnapshot => ({
  stepId: "step-1",
  purpose: "train",
  step: 1,
  state: "gathering",
  source: "planned",
  createdAt: 990_000,
  updateLeaseUntil: null,
  updateFailures: 0,
  ...over,
});

export const buildRollout = (over: Partial<RolloutSnapshot> = {}): RolloutSnapshot => ({
  rolloutId: "rollout-1",
  stepId: "step-1",
  groupId: "group-1",
  taskSet: 0,
  sample: 0,
  attempt: 1,
  stage: "init",
  state: "waiting",
  claim: 0,
  deliveries: 0,
  leaseUntil: null,
  notBefore: null,
  readyAt: 990_000,
  stageStartedAt: null,
  ending: null,
  reason: null,
  outcome: null,
  reward: null,
  infrastructureFailures: 0,
  evaluateFailures: 0,
  holds: [],
  ...over,
});

export const scored = (over: Partial<RolloutSnapshot> = {}): RolloutSnapshot =>
  buildRollout({
    stage: "evaluate",
    state: "settled",
    outcome: "completed",
    ending: "finish_tool",
    reward: 1,
    ...over,
  });

export const lost = (over: Partial<RolloutSnapshot> = {}): RolloutSnapshot =>
  buildRollout({ stage: "run", state: "settled", outcome: "failed", ending: "sandbox_lost", ...over });

export const buildGroup = (over: Partial<GroupSnapshot> = {}): GroupSnapshot => ({
  groupId: "group-1",
  stepId: "step-1",
  instance: { taskSet: 0, split: "train", instanceIndex: 7 },
  setAside: null,
  replaces: null,
  expectedMs: null,
  held: false,
  ...over,
});
