/** One thing to predict: a policy with its bounds and pools, on a run that is otherwise the same. */
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { Resource } from "@rolldeck/contracts/plan";
import type { Bounds } from "@rolldeck/contracts/run-config";
import { dispatcherNamed } from "../registry.ts";
import type { SimulationInput } from "./simulation-input.ts";

export const knobs = ["init", "run", "evaluate", "sandboxes"] as const;
export type Knob = (typeof knobs)[number];

export interface Setting {
  readonly dispatcher: string;
  readonly bounds: Bounds;
  /** Size of the sandbox pool. */
  readonly sandboxes: number;
}

const slotOf: Record<Stage, Resource> = { init: "initSlot", run: "runSlot", evaluate: "gradeSlot" };

export const settingOf = ({ config, pools }: SimulationInput): Setting => ({
  dispatcher: config.dispatcher.name,
  bounds: config.dispatcher.bounds,
  sandboxes: pools.sandbox,
});

export const knobValue = (setting: Setting, knob: Knob): number =>
  knob === "sandboxes" ? setting.sandboxes : setting.bounds[knob];

export const withKnob = (setting: Setting, knob: Knob, value: number): Setting =>
  knob === "sandboxes"
    ? { ...setting, sandboxes: value }
    : { ...setting, bounds: { ...setting.bounds, [knob]: value } };

/** Whether a policy begins groups while older ones train. */
export const overlapsUpdates = (name: string): boolean => dispatcherNamed(name)?.overlapsUpdates === true;

/** Steps after which one that overlaps others has found its pace. */
const pacedSteps = ({ config }: SimulationInput): number => 2 * config.dispatcher.maxStaleness + 4;

/**
 * The input under another setting. A bound that is raised takes its pool along, or it would change nothing; a policy that overlaps
 * steps is judged over several of them.
 */
export function withSetting(input: SimulationInput, { dispatcher, bounds, sandboxes }: Setting): SimulationInput {
  const present = input.config.dispatcher;
  const pools = { ...input.pools, sandbox: sandboxes };
  for (const stage of ["init", "run", "evaluate"] as const) {
    const slot = slotOf[stage];
    if (bounds[stage] > present.bounds[stage]) pools[slot] = Math.max(pools[slot], bounds[stage]);
  }
  const { budget } = input.config;
  const steps = overlapsUpdates(dispatcher) ? Math.max(budget.steps, pacedSteps(input)) : budget.steps;
  return {
    ...input,
    pools,
    config: { ...input.config, dispatcher: { ...present, name: dispatcher, bounds }, budget: { ...budget, steps } },
  };
}
