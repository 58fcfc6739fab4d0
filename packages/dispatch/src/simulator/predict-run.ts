/**
 * What a run as it is will take: one setting, played once per seed. The times of its steps are alike, but for a first one that has
 * nothing under way yet.
 */
import type { PredictedRun, WaitShares } from "@rolldeck/contracts/api/predictions";
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { Scenario } from "./run-scenario.ts";
import { settingOf, withSetting } from "./scenario.ts";
import { simulate } from "./simulate.ts";
import type { Simulation } from "./simulation.ts";
import type { SimulationInput } from "./simulation-input.ts";
import { meanInterval, stepMsOf } from "./step-time.ts";

/** @param steps that the run is to take; 1 for an evaluation run */
export function predictRun(scenario: Scenario, seeds: number, steps: number): PredictedRun {
  const playedAs = (change: Partial<SimulationInput>): Simulation[] =>
    Array.from({ length: seeds }, (_, at) => {
      const input = { ...scenario.of(at + 1), ...change };
      return simulate(withSetting(input, settingOf(input)));
    });
  const played = playedAs({});
  const { dispatcher, bounds, sandboxes } = settingOf(scenario.of(1));
  const stepMs = meanInterval(played.map(stepMsOf));
  // The first step of a run opens the environments that later ones find.
  const first = scenario.of(1).environmentsOpen === true ? playedAs({ environmentsOpen: false }) : played;
  const firstStepMs = meanInterval(first.map(firstStepMsOf)).mean;
  const makespanMs = firstStepMs + (steps - 1) * stepMs.mean;
  const spans = played.flatMap((simulation) => simulation.spans);
  const waits = waitShares(spans) ?? { init: 0, run: 0, evaluate: 0 };
  return { dispatcher, bounds, sandboxes, seeds, stepMs, firstStepMs, steps, makespanMs, waits };
}

function firstStepMsOf({ steps, makespanMs }: Simulation): number {
  const ends = steps.flatMap(({ purpose, endedAt }) => (purpose === "train" && endedAt !== null ? [endedAt] : []));
  return ends.length === 0 ? makespanMs : Math.min(...ends);
}

/** A stage of one attempt, on any clock, milliseconds. */
interface Span {
  readonly stage: Stage;
  readonly readyAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/** Over stages that came to their end. @returns null where none did */
export function waitShares(spans: Iterable<Span>): WaitShares | null {
  const waited = { init: 0, run: 0, evaluate: 0 };
  let all = 0;
  for (const { stage, readyAt, startedAt, endedAt } of spans) {
    if (startedAt === null || endedAt === null) continue;
    waited[stage] += startedAt - readyAt;
    all += endedAt - readyAt;
  }
  if (all <= 0) return null;
  for (const stage of stages) waited[stage] /= all;
  return waited;
}
