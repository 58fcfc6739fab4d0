/** The rows of the little world: what the database would hold, as plain mutable objects. */
import type { Ending } from "@rolldeck/contracts/endings";
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type {
  BatchRequestSnapshot,
  GroupSnapshot,
  Resource,
  RolloutSnapshot,
  RunSnapshot,
  StepSnapshot,
} from "@rolldeck/contracts/plan";
import { resources } from "@rolldeck/contracts/plan";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { isOpen } from "../src/facts.ts";
import { counts } from "./build-snapshot.ts";

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** A lease row: by whom, until which stage. */
export interface LeaseRow {
  readonly resource: Resource;
  readonly until: Stage;
}
export type RolloutRow = Mutable<Omit<RolloutSnapshot, "holds">> & {
  leases: LeaseRow[];
  /** A living worker renews the lease. */
  alive: boolean;
  /** How the run stage ended. */
  runEnding: Ending | null;
  settledTimes: number;
  /** Attempts as planned, from 1. */
  readonly purpose: "train" | "evaluate";
};
export type StepRow = Mutable<StepSnapshot> & {
  claim: number;
  alive: boolean;
  trained: boolean;
  /** Versions its oldest group lay behind when it was updated. */
  staleness: number;
};
export type GroupRow = Mutable<GroupSnapshot>;
type Kept = "steps" | "rollouts" | "held" | "now" | "batchRequests" | "groups" | "recentStarts" | "groupsDrawn";
export type RunRow = Mutable<Omit<RunSnapshot, Kept>> & {
  steps: StepRow[];
  rollouts: RolloutRow[];
  groups: GroupRow[];
  groupsDrawn: number;
  /** When rollouts entered init, ever. */
  starts: number[];
  batchRequests: BatchRequestSnapshot[];
  prepareClaim: number;
  prepareAlive: boolean;
  dirty: boolean;
  wakeAt: number | null;
  notes: string[];
  endReason: string | null;
};

export const newRun = (
  runId: string,
  config: RunConfig,
  { taskSizes, taskSandboxes, gradedInPlace = [] }: Pick<RunSnapshot, "taskSizes" | "taskSandboxes" | "gradedInPlace">,
): RunRow => ({
  runId,
  config,
  taskSizes,
  taskSandboxes,
  gradedInPlace,
  status: "queued",
  servingVersion: null,
  modelBootId: null,
  backendBootId: "boot-0",
  prepareLeaseUntil: null,
  prepareFailures: 0,
  startedAt: null,
  sampledTokens: 0,
  steps: [],
  rollouts: [],
  groups: [],
  groupsDrawn: 0,
  starts: [],
  draining: false,
  runLimit: null,
  engine: null,
  batchRequests: [],
  trainerLeaseUntil: null,
  prepareClaim: 0,
  prepareAlive: false,
  dirty: true,
  wakeAt: null,
  notes: [],
  endReason: null,
});

/** Time to the end of a lease that was renewed a while ago. */
const renewedMs = 10_000;
const minuteMs = 60_000;

export function snapshotOf(run: RunRow, now: number): RunSnapshot {
  const open = new Set(run.steps.filter(isOpen).map(({ stepId }) => stepId));
  const lease = (alive: boolean, until: number | null): number | null => (alive ? now + renewedMs : until);
  return {
    now,
    runId: run.runId,
    status: run.status,
    config: run.config,
    servingVersion: run.servingVersion,
    modelBootId: run.modelBootId,
    backendBootId: run.backendBootId,
    prepareLeaseUntil: lease(run.prepareAlive, run.prepareLeaseUntil),
    prepareFailures: run.prepareFailures,
    startedAt: run.startedAt,
    sampledTokens: run.sampledTokens,
    taskSizes: run.taskSizes,
    taskSandboxes: run.taskSandboxes,
    gradedInPlace: run.gradedInPlace,
    groups: run.groups.filter(({ stepId }) => open.has(stepId)).map((group) => ({ ...group })),
    groupsDrawn: run.groupsDrawn,
    recentStarts: run.starts.filter((at) => at > now - minuteMs),
    draining: run.draining ?? false,
    runLimit: run.runLimit ?? null,
    engine: run.engine ?? null,
    steps: newestSteps(run.steps).map(({ claim: _claim, alive, trained: _trained, staleness: _age, ...step }) => ({
      ...step,
      updateLeaseUntil: lease(alive, step.updateLeaseUntil),
    })),
    rollouts: run.rollouts
      .filter(({ stepId }) => open.has(stepId))
      .map(({ leases, alive, runEnding: _run, settledTimes: _times, purpose: _purpose, ...rollout }) => ({
        ...rollout,
        leaseUntil: lease(alive, rollout.leaseUntil),
        holds: leases.map(({ resource }) => resource),
      })),
    batchRequests: [...run.batchRequests],
    trainerLeaseUntil: run.trainerLeaseUntil,
    held: heldBy(run),
  };
}

/** Open ones, and eight ended ones of each purpose. */
function newestSteps(steps: readonly StepRow[]): StepRow[] {
  const ended = (purpose: string) => steps.filter((step) => step.purpose === purpose && !isOpen(step)).slice(-8);
  return [...steps.filter(isOpen), ...ended("train"), ...ended("evaluate")];
}

export function heldBy(run: RunRow): Record<Resource, number> {
  const held = { ...counts(0) };
  for (const rollout of run.rollouts) for (const { resource } of rollout.leases) held[resource] += 1;
  return held;
}

export function usedOf(runs: readonly RunRow[]): Record<Resource, number> {
  const used = { ...counts(0) };
  for (const run of runs) {
    const held = heldBy(run);
    for (const resource of resources) used[resource] += held[resource];
  }
  return used;
}
