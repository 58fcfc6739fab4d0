/**
 * What another policy or other pool sizes would change: a table of predicted step times, and the changes that are worth making in
 * words. Every setting meets the same luck (the same seeds), so differences are the settings' own.
 */
import { dispatcherNames } from "../registry.ts";
import { adviceSentences, worthwhile } from "./advice-sentences.ts";
import type { Prediction } from "./prediction.ts";
import { type Knob, knobs, knobValue, type Setting, settingOf, withKnob, withSetting } from "./scenario.ts";
import { simulate } from "./simulate.ts";
import type { Simulation, WaitCause } from "./simulation.ts";
import type { SimulationInput } from "./simulation-input.ts";
import { changeInterval, meanInterval, stepMsOf } from "./step-time.ts";

export interface AdviseOptions {
  /** The run as it is, with what the seed draws. */
  readonly scenario: (seed: number) => SimulationInput;
  /** How many seeds are played; default 4. */
  readonly seeds?: number;
  /** Policies to try beside the present one; default all. */
  readonly dispatchers?: readonly string[];
  /** Settings to predict at most; default 40. */
  readonly maxSettings?: number;
}

export interface Advice {
  readonly present: Prediction;
  /** Fastest first. */
  readonly others: readonly Prediction[];
  readonly sentences: readonly string[];
}

export interface AdviceProgress {
  readonly done: number;
  /** Grows when a first look shows what else is worth trying. */
  readonly total: number;
}

const raises = [1.25, 1.5, 1.75, 2] as const;
const cuts = [0.5, 0.75] as const;
/** A stage that is busier than this is not made smaller. */
const idleBelow = 0.6;
const knobCause: Record<Knob, WaitCause> = {
  init: "init-slot",
  run: "run-slot",
  evaluate: "grade-slot",
  sandboxes: "sandbox",
};

/** Predicts setting by setting: a caller may show how far it is, and stop it between two simulations. */
export function* advising(options: AdviseOptions): Generator<AdviceProgress, Advice> {
  const { scenario, seeds = 4, dispatchers = dispatcherNames, maxSettings = 40 } = options;
  const inputs = Array.from({ length: seeds }, (_, at) => scenario(at + 1));
  const [first] = inputs;
  if (first === undefined) throw new RangeError("at least one seed");
  const progress = { done: 0, total: seeds };
  function* predict(setting: Setting, before: readonly number[] | null): Generator<AdviceProgress, Measured> {
    const simulations: Simulation[] = [];
    for (const input of inputs) {
      simulations.push(simulate(withSetting(input, setting)));
      progress.done += 1;
      yield { ...progress };
    }
    return measured(setting, simulations, before);
  }
  const present = yield* predict(settingOf(first), null);
  const candidates = worthTrying(first, present.prediction, dispatchers).slice(0, maxSettings);
  progress.total += (candidates.length + 1) * seeds;
  const others: Measured[] = [];
  for (const setting of candidates) others.push(yield* predict(setting, present.times));
  const together = combined(present.prediction, others);
  if (together !== null) others.push(yield* predict(together, present.times));
  const predictions = others.map(({ prediction }) => prediction).sort((a, b) => a.stepMs.mean - b.stepMs.mean);
  return {
    present: present.prediction,
    others: predictions,
    sentences: adviceSentences(present.prediction, predictions),
  };
}

/** The same in one go. */
export function advise(options: AdviseOptions): Advice {
  const steps = advising(options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

interface Measured {
  readonly prediction: Prediction;
  /** Step time of each seed. */
  readonly times: readonly number[];
}

function measured(setting: Setting, simulations: readonly Simulation[], before: readonly number[] | null): Measured {
  const times = simulations.map(stepMsOf);
  const [simulation] = simulations;
  if (simulation === undefined) throw new RangeError("at least one seed");
  const change = before === null ? null : changeInterval(before, times);
  return { prediction: { setting, stepMs: meanInterval(times), change, simulation }, times };
}

/** Every policy with the present bounds; each bound that something waits for larger, each that is mostly idle smaller. */
function worthTrying(input: SimulationInput, present: Prediction, dispatchers: readonly string[]): Setting[] {
  const { setting, simulation } = present;
  const policies = dispatchers.filter((name) => name !== setting.dispatcher);
  const needsSandbox = input.taskSandboxes.some((need) => need !== "none");
  const allWaits = Object.values(simulation.waits).reduce((sum, ms) => sum + ms, 0);
  const sized = knobs.filter((knob) => knob !== "sandboxes" || needsSandbox);
  const changed = sized.flatMap((knob) => {
    const isWaitedFor = simulation.waits[knobCause[knob]] > 0.01 * allWaits;
    const factors = [...(isWaitedFor ? raises : []), ...(shareOf(simulation, knob) < idleBelow ? cuts : [])];
    const values = new Set(factors.map((factor) => Math.max(1, Math.round(knobValue(setting, knob) * factor))));
    values.delete(knobValue(setting, knob));
    return [...values].map((value) => withKnob(setting, knob, value));
  });
  return [...policies.map((dispatcher) => ({ ...setting, dispatcher })), ...changed];
}

/** How much of the knob's pool was in use, 0–1. */
const shareOf = ({ busy }: Simulation, knob: Knob): number =>
  ({ init: busy.initSlot, run: busy.runSlot, evaluate: busy.gradeSlot, sandboxes: busy.sandbox })[knob];

/** The best policy with every raise that gains by itself; null when that is one setting which was tried already. */
function combined(present: Prediction, others: readonly Measured[]): Setting | null {
  const gains = others
    .map(({ prediction }) => prediction)
    .filter(({ change }) => (change?.mean ?? 0) <= -worthwhile)
    .sort((a, b) => a.stepMs.mean - b.stepMs.mean);
  const policy = gains.find(({ setting }) => setting.dispatcher !== present.setting.dispatcher)?.setting.dispatcher;
  let together = present.setting;
  let parts = 0;
  for (const knob of knobs) {
    const best = gains.find(({ setting }) => knobValue(setting, knob) > knobValue(present.setting, knob));
    if (best === undefined) continue;
    together = withKnob(together, knob, knobValue(best.setting, knob));
    parts += 1;
  }
  if (policy !== undefined) together = { ...together, dispatcher: policy };
  return parts + (policy === undefined ? 0 : 1) >= 2 ? together : null;
}
