/** Simulations of a run as it is dispatched now, over what was recorded of it. */
import type { StartSimulation } from "@rolldeck/contracts/api/simulations";
import { InputError, NotFoundError } from "@rolldeck/contracts/errors";
import { readDispatched } from "@rolldeck/db/reads/read-dispatched";
import { readDurations } from "@rolldeck/db/reads/read-durations";
import { dispatcherNames } from "@rolldeck/dispatch/registry";
import { median } from "@rolldeck/dispatch/simulator/median";
import type { Pool } from "pg";
import type { z } from "zod";
import { nearestName } from "../nearest-name.ts";
import type { SimulationServices } from "../services.ts";
import type { Simulations } from "../simulation/simulations.ts";
import type { SimulationTask } from "../simulation/thread-message.ts";
import { assumed, isColocated, sizesOf } from "./simulated-scene.ts";

/** What a simulation needs to know of a task. */
export interface SimulatedTaskFacts {
  readonly sandbox: "none" | "process" | "image";
  readonly gradeInPlace: boolean;
}
interface Options {
  readonly pool: Pool;
  readonly simulations: Simulations;
  readonly factsOf: (task: string) => SimulatedTaskFacts | null;
}

/** A step with more rollouts than this is played half as often: it costs as much. */
const largeStep = 1_024;
const recordedRollouts = 4_096;

export function createSimulationServices(options: Options): SimulationServices {
  const { simulations } = options;
  return {
    start: async (input) => simulations.start(input.runId, await taskOf(options, input)),
    get: async ({ simulationId }) => simulations.get(simulationId),
    cancel: async ({ simulationId }) => simulations.cancel(simulationId),
  };
}

/** @throws NotFoundError for the run, InputError for a policy that is not there */
async function taskOf(
  { pool, factsOf }: Options,
  { runId, dispatchers, seeds }: z.output<typeof StartSimulation>,
): Promise<SimulationTask> {
  refuseUnknown(dispatchers ?? []);
  const { config, pools } = await readDispatched(pool, runId);
  const purpose = config.kind === "train" ? "train" : "evaluate";
  const durations = await readDurations(pool, { runId, purpose, limit: recordedRollouts });
  const facts = config.taskSets.map(({ name }) => {
    const known = factsOf(name);
    if (known === null) throw new NotFoundError("task", name);
    return known;
  });
  const rollouts = config.algorithm.groupsPerStep * config.algorithm.groupSize;
  return {
    run: {
      config,
      pools: sizesOf(pools, config),
      taskSandboxes: facts.map(({ sandbox }) => sandbox),
      gradedInPlace: facts.map(({ gradeInPlace }) => gradeInPlace),
      recorded: { durations, taskSets: config.taskSets.map(({ name }) => name) },
      assumed,
      colocated: isColocated(config),
    },
    dispatchers: dispatchers ?? null,
    seeds: seeds ?? (rollouts > largeStep ? 2 : 4),
    actualStepMs: median(durations.steps.stepMs),
    steps: durations.steps.stepMs.length,
  };
}

function refuseUnknown(asked: readonly string[]): void {
  const issues = asked.flatMap((name, at) => {
    if (dispatcherNames.some((known) => known === name)) return [];
    const near = nearestName(name, dispatcherNames);
    return [{ path: `dispatchers[${at}]`, message: `there is no policy ${name}`, ...(near ? { fix: near } : {}) }];
  });
  if (issues.length > 0) throw new InputError(issues);
}
