/** Simulations of a run as it is dispatched now, over what was recorded of it. */
import type { StartSimulation } from "@rolldeck/contracts/api/simulations";
import { InputError } from "@rolldeck/contracts/errors";
import { readDispatched } from "@rolldeck/db/reads/read-dispatched";
import { readDurations } from "@rolldeck/db/reads/read-durations";
import { dispatcherNames } from "@rolldeck/dispatch/registry";
import { median } from "@rolldeck/dispatch/simulator/median";
import type { Pool } from "pg";
import type { z } from "zod";
import { nearestName } from "../nearest-name.ts";
import type { SimulationServices } from "../services.ts";
import { recordedRollouts, runToPlay, type SimulatedTaskFacts, seedsFor } from "../simulation/run-to-play.ts";
import type { Simulations } from "../simulation/simulations.ts";
import type { SimulationTask } from "../simulation/thread-message.ts";

interface Options {
  readonly pool: Pool;
  readonly simulations: Simulations;
  readonly factsOf: (task: string) => SimulatedTaskFacts | null;
}

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
  const dispatched = await readDispatched(pool, runId);
  const { config } = dispatched;
  const purpose = config.kind === "train" ? "train" : "evaluate";
  const durations = await readDurations(pool, { runId, purpose, limit: recordedRollouts });
  return {
    run: runToPlay(dispatched, durations, factsOf),
    dispatchers: dispatchers ?? null,
    seeds: seeds ?? seedsFor(config),
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
