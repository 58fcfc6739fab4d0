/** A run as it is dispatched now, over recorded durations, as something to simulate. */
import { findBackend } from "@rolldeck/backends/registry";
import type { Durations } from "@rolldeck/contracts/api/durations";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { type ResourceCounts, resources } from "@rolldeck/contracts/plan";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { DispatchedRun } from "@rolldeck/db/reads/read-dispatched";
import type { RunScenario } from "@rolldeck/dispatch/simulator/run-scenario";

/** What a simulation needs to know of a task. */
export interface SimulatedTaskFacts {
  readonly sandbox: "none" | "process" | "image";
  readonly gradeInPlace: boolean;
}

/** Newest rollouts that are looked at. */
export const recordedRollouts = 4_096;
/** A step with more rollouts than this is played half as often: it costs as much. */
const largeStep = 1_024;

export const seedsFor = ({ algorithm }: RunConfig): number =>
  algorithm.groupsPerStep * algorithm.groupSize > largeStep ? 2 : 4;

/** Of stages that nobody has seen yet. */
export const assumed = { ms: { init: 5_000, run: 60_000, evaluate: 10_000 }, deviation: 0.5 };

/** @param durations by the run's own task sets; null: assumed ones @throws NotFoundError for a task that this server does not have */
export function runToPlay(
  { config, pools }: DispatchedRun,
  durations: Durations | null,
  factsOf: (task: string) => SimulatedTaskFacts | null,
): RunScenario {
  const facts = config.taskSets.map(({ name }) => {
    const known = factsOf(name);
    if (known === null) throw new NotFoundError("task", name);
    return known;
  });
  return {
    config,
    pools: sizesOf(pools, config),
    taskSandboxes: facts.map(({ sandbox }) => sandbox),
    gradedInPlace: facts.map(({ gradeInPlace }) => gradeInPlace),
    recorded: durations && { durations, taskSets: config.taskSets.map(({ name }) => name) },
    assumed,
    colocated: isColocated(config),
  };
}

/** Its updates and its sampling share their devices. */
const isColocated = ({ backend }: RunConfig): boolean => findBackend(backend.name)?.overlap === false;

/** A pool that is not there is as large as the run's bounds ask for. */
function sizesOf(pools: Readonly<Partial<ResourceCounts>>, { dispatcher }: RunConfig): ResourceCounts {
  const { init, run, evaluate } = dispatcher.bounds;
  const wanted = { sandbox: init + run + evaluate, initSlot: init, runSlot: run, gradeSlot: evaluate, gpu: 1 };
  for (const resource of resources) wanted[resource] = pools[resource] ?? wanted[resource];
  return wanted;
}
