/** A run as it is dispatched now, over recorded durations, as something to simulate. */
import type { Durations } from "@rolldeck/contracts/api/durations";
import { NotFoundError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { DispatchedRun } from "@rolldeck/db/reads/read-dispatched";
import type { RunScenario } from "@rolldeck/dispatch/simulator/run-scenario";
import { assumed, isColocated, sizesOf } from "../services/simulated-scene.ts";

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

/** @param durations by the run's own task sets @throws NotFoundError for a task that this server does not have */
export function runToPlay(
  { config, pools }: DispatchedRun,
  durations: Durations,
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
    recorded: { durations, taskSets: config.taskSets.map(({ name }) => name) },
    assumed,
    colocated: isColocated(config),
  };
}
