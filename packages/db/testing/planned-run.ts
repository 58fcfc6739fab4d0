/** A run that is brought on by hand-written plans, with every row made by the product's own statements. */
import type { Action, NewGroup, NewLease, RunSnapshot } from "@rolldeck/contracts/plan";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { reportGpuWorker, supervisedGpuWorker } from "../src/gpu-workers.ts";
import { type Applied, applyActions } from "../src/reconcile/apply-actions.ts";
import { readSnapshot } from "../src/reconcile/read-snapshot.ts";
import { createRun } from "../src/runs/create-run.ts";
import { claimPrepare } from "../src/training/claim-prepare.ts";
import { setModel } from "../src/training/set-model.ts";

/** Endless tasks without sandboxes. */
export const plainTasks = async (config: RunConfig) =>
  config.taskSets.map(() => ({ size: () => null, sandbox: "none" as const }));
const facts = {
  instanceId: async ({ taskSets }: RunConfig, { taskSet, split, instanceIndex }: NewGroup) =>
    `${taskSets[taskSet]?.name}-${split}-${instanceIndex}`,
};

export async function snapshotOf(pool: pg.Pool, runId: string): Promise<RunSnapshot> {
  const read = await readSnapshot(pool, runId, plainTasks);
  if (!read) throw new Error(`no run ${runId}`);
  return read.snapshot;
}

/** Applies actions to the run as it is now, or as an earlier snapshot showed it. */
export async function act(
  pool: pg.Pool,
  runId: string,
  actions: readonly Action[],
  snapshot?: RunSnapshot,
): Promise<Applied> {
  return applyActions(pool, snapshot ?? (await snapshotOf(pool, runId)), actions, facts);
}

export interface PlannedRunOptions {
  readonly config?: Partial<RunConfigInput>;
  readonly groups?: number;
  readonly groupSize?: number;
}

/** A running run whose model serves version 0 and whose first train step waits in init. */
export async function startPlannedRun(pool: pg.Pool, options: PlannedRunOptions = {}): Promise<{ runId: string }> {
  const { groups = 2, groupSize = 4 } = options;
  const config = RunConfig.parse({ name: "planned", seed: 3, taskSets: [{ name: "key-chain" }], ...options.config });
  const { runId } = await createRun(pool, { config });
  const worker = {
    name: supervisedGpuWorker,
    url: null,
    state: "ready",
    boot: null,
    device: "cpu",
    bootId: "boot-1",
  } as const;
  await reportGpuWorker(pool, worker);
  await act(pool, runId, [{ do: "prepare" }, { do: "move-run", from: "queued", to: "preparing", reason: null }]);
  const prepare = await claimPrepare(pool, runId, "w1");
  if (!prepare) throw new Error("the prepare job was not there");
  await setModel(pool, {
    runId,
    claim: prepare.claim,
    modelId: "m1",
    bootId: "boot-1",
    samplingSessionId: "s0",
    version: 0,
    checkpoint: null,
    replayed: 0,
  });
  await act(pool, runId, [{ do: "move-run", from: "preparing", to: "running", reason: null }]);
  if (config.stepSource === "planned") await act(pool, runId, [createStep(1, groups, groupSize)]);
  return { runId };
}

export const createStep = (step: number, groups: number, groupSize: number): Action => ({
  do: "create-step",
  purpose: "train",
  step,
  source: "planned",
  batchId: null,
  groups: Array.from({ length: groups }, (_, index) => ({ taskSet: 0, split: "train", instanceIndex: index })),
  groupSize,
});

/** Admits every waiting rollout of the snapshot to its stage. */
export const admitAll = (snapshot: RunSnapshot, leases: readonly NewLease[] = []): Action[] =>
  snapshot.rollouts
    .filter(({ state }) => state === "waiting")
    .map(({ rolloutId, attempt, stage }) => ({ do: "admit", rolloutId, attempt, stage, leases }));
