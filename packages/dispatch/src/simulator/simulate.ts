/**
 * The planner in virtual time: the very `plan` of production over rows in memory, workers that take as long as they are told,
 * and a reconciler with the live one's habits. Deterministic in its input; pure.
 */
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import { type Resource, resources } from "@rolldeck/contracts/plan";
import { ApplyToRows } from "./apply-to-rows.ts";
import { EventQueue } from "./event-queue.ts";
import { RunRows } from "./run-rows.ts";
import { SimulatedReconciler } from "./simulated-reconciler.ts";
import { SimulatedWorkers } from "./simulated-workers.ts";
import type { Simulation } from "./simulation.ts";
import type { SimulationInput } from "./simulation-input.ts";
import { meanOf } from "./step-function.ts";
import { Tally } from "./tally.ts";

/** Events in a row without time going on, before a simulation counts as stuck. */
const maxEventsAtOnce = 1_000_000;

/** A simulation that would never end: the planner and its input do not fit. */
export class SimulationStuck extends Error {
  override readonly name = "SimulationStuck";
}

/** @throws SimulationStuck when nothing leads on although the run has not ended */
export function simulate(input: SimulationInput): Simulation {
  const queue = new EventQueue(0);
  const tally = new Tally();
  const rows = new RunRows(input, tally);
  const workers = new SimulatedWorkers(rows, queue, () => reconciler.wake());
  const applier = new ApplyToRows(rows, queue, {
    stage: (row) => workers.stage(row),
    update: (step) => workers.update(step),
  });
  const reconciler = new SimulatedReconciler(rows, queue, (action) => applier.apply(action));
  reconciler.wake();
  let atOnce = 0;
  while (!endedRunStatuses.includes(rows.status)) {
    const before = queue.now;
    if (!queue.step()) throw new SimulationStuck(`nothing happens any more after ${queue.now} ms of the run`);
    atOnce = queue.now > before ? 0 : atOnce + 1;
    if (atOnce > maxEventsAtOnce) throw new SimulationStuck(`time stands still at ${queue.now} ms of the run`);
  }
  tally.advance(queue.now);
  return resultOf(rows, queue.now, reconciler.plans);
}

function resultOf(rows: RunRows, makespanMs: number, plans: number): Simulation {
  const { tally, input } = rows;
  const busy = {} as Record<Resource, number>;
  for (const resource of resources) {
    busy[resource] = meanOf(tally.use[resource], 0, makespanMs) / Math.max(1, input.pools[resource]);
  }
  return {
    makespanMs,
    status: rows.status,
    reason: rows.reason,
    steps: rows.steps.map(({ purpose, step, state, createdAt, updateAt, endedAt, batch }) => ({
      ...{ purpose, step, state, createdAt, updateAt, endedAt, trained: batch.length },
    })),
    spans: rows.spans,
    use: tally.use,
    active: tally.active,
    busy,
    waits: tally.waits,
    trainerOnlyMs: tally.trainerOnlyMs,
    trainerIdleMs: tally.trainerIdleMs,
    staleness: Array.from(rows.staleness, (groups) => groups ?? 0),
    outcomes: tally.outcomes,
    plans,
  };
}
