/**
 * How many sampler replicas a trainer needs until it no longer waits: the run is simulated with one replica more each time, each
 * of them bringing the present run slots and, where a GPU is given, its own tokens per second.
 */

import { dispatcherNames } from "../registry.ts";
import { overlapsUpdates, settingOf, withSetting } from "./scenario.ts";
import { simulate } from "./simulate.ts";
import type { Simulation, WaitCause } from "./simulation.ts";
import type { SimulationInput } from "./simulation-input.ts";
import { stepMsOf } from "./step-time.ts";

export interface SplitRow {
  readonly replicas: number;
  readonly stepMs: number;
  /** Share of the time between the first update and the last in which the trainer had nothing to train, 0–1. */
  readonly trainerWaits: number;
}

export interface SplitAdvice {
  readonly dispatcher: string;
  readonly rows: readonly SplitRow[];
  /** Replicas from which on the trainer waits no more; null: more of them do not bring it there. */
  readonly enough: number | null;
  readonly sentence: string;
}

/** A trainer that waits less than this counts as busy: steps differ in length, so some waiting is left to chance. */
const waitsNoMore = 0.05;
/** A replica that makes a step no shorter than this is no help. */
const noHelp = 0.01;
const enoughSteps = 6;

/** @param input with a trainer; its updates overlap with sampling only under a policy that lets them (`async`) */
export function splitAdvice(input: SimulationInput, maxReplicas = 8): SplitAdvice {
  const present = input.config.dispatcher.name;
  const dispatcher = overlapsUpdates(present) ? present : (dispatcherNames.find(overlapsUpdates) ?? present);
  const rows: SplitRow[] = [];
  let last: Simulation | null = null;
  for (let replicas = 1; replicas <= maxReplicas; replicas++) {
    last = simulate(withReplicas(input, dispatcher, replicas));
    const row = { replicas, stepMs: stepMsOf(last), trainerWaits: trainerWaitsOf(last) };
    const before = rows.at(-1);
    rows.push(row);
    if (row.trainerWaits <= waitsNoMore) break;
    if (before !== undefined && row.stepMs > before.stepMs * (1 - noHelp)) break;
  }
  const enough = rows.find(({ trainerWaits }) => trainerWaits <= waitsNoMore)?.replicas ?? null;
  return { dispatcher, rows, enough, sentence: sentenceOf(rows, enough, last) };
}

function withReplicas(input: SimulationInput, dispatcher: string, replicas: number): SimulationInput {
  const setting = settingOf(input);
  const run = setting.bounds.run * replicas;
  const scaled = withSetting(input, { ...setting, dispatcher, bounds: { ...setting.bounds, run } });
  const steps = Math.max(enoughSteps, scaled.config.budget.steps);
  return {
    ...scaled,
    config: { ...scaled.config, budget: { ...scaled.config.budget, steps } },
    ...(input.gpu ? { gpu: { ...input.gpu, replicas: (input.gpu.replicas ?? 1) * replicas } } : {}),
  };
}

/** The pipe has to fill before the first update: that is not counted. */
function trainerWaitsOf({ steps }: Simulation): number {
  const updates = steps
    .filter(({ updateAt, endedAt }) => updateAt !== null && endedAt !== null)
    .map(({ updateAt, endedAt }) => ({ from: updateAt ?? 0, to: endedAt ?? 0 }))
    .sort((a, b) => a.from - b.from);
  const [first] = updates;
  const last = updates.at(-1);
  if (first === undefined || last === undefined || last.to <= first.from) return 0;
  const busy = updates.reduce((sum, { from, to }) => sum + to - from, 0);
  return 1 - busy / (last.to - first.from);
}

const causeNames: Readonly<Record<WaitCause, string>> = {
  sandbox: "sandboxes",
  "init-slot": "init slots",
  "run-slot": "run slots",
  "grade-slot": "grading slots",
  gpu: "tokens of the engine",
  "back-off": "failed rollouts",
  engine: "nothing but the length of the rollouts",
};

function sentenceOf(rows: readonly SplitRow[], enough: number | null, last: Simulation | null): string {
  const percent = (share: number): string => `${Math.round(share * 100)} %`;
  const [one] = rows;
  if (enough === 1) return "one sampler replica keeps the trainer busy";
  if (enough !== null) {
    return `${enough} sampler replicas keep the trainer busy; with one it waits ${percent(one?.trainerWaits ?? 0)} of the time`;
  }
  const causes = Object.entries(last?.waits ?? {}).sort(([, a], [, b]) => b - a);
  const [cause] = causes[0] ?? ["engine"];
  const name = Object.entries(causeNames).find(([key]) => key === cause)?.[1] ?? cause;
  const most = rows.at(-1);
  return `with ${most?.replicas ?? 1} sampler replicas the trainer still waits ${percent(most?.trainerWaits ?? 0)} of the time: rollouts wait for ${name}`;
}
