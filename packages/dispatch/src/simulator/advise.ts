/**
 * What another policy or other pool sizes would change: a table of predicted step times, and the changes that are worth making in
 * words. Every setting meets the same luck (the same seeds), so differences are the settings' own.
 */
import { dispatcherNames } from "../registry.ts";
import { adviceSentences, noSlower, worthwhile } from "./advice-sentences.ts";
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
  /** Simulations so far. How many it takes shows only while they are made: some tens of settings times the seeds. */
  readonly done: number;
}

const raises = [1.25, 1.5, 1.75] as const;
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
  const trial = new Trial(inputs, maxSettings);
  const present = yield* trial.predict(settingOf(first), null);
  const { setting } = present.prediction;
  const policies = dispatchers.filter((name) => name !== setting.dispatcher);
  for (const dispatcher of policies) yield* trial.predict({ ...setting, dispatcher }, present);
  for (const knob of knobs) {
    if (knob === "sandboxes" && first.taskSandboxes.every((need) => need === "none")) continue;
    yield* tryKnob(trial, present, knob);
  }
  const together = combined(present.prediction, trial.others);
  if (together !== null) yield* trial.predict(together, present);
  const others = trial.others.toSorted((a, b) => a.stepMs.mean - b.stepMs.mean);
  return { present: present.prediction, others, sentences: adviceSentences(present.prediction, others) };
}

/** Larger where something waits for it, smaller where it is mostly idle; the steps between only where the extreme shows a use. */
function* tryKnob(trial: Trial, present: Measured, knob: Knob): Generator<AdviceProgress, void> {
  const { setting, simulation } = present.prediction;
  const by = (factor: number) =>
    trial.predict(withKnob(setting, knob, Math.max(1, Math.round(knobValue(setting, knob) * factor))), present);
  const allWaits = Object.values(simulation.waits).reduce((sum, ms) => sum + ms, 0);
  if (simulation.waits[knobCause[knob]] > 0.01 * allWaits) {
    const most = yield* by(2);
    if ((most.prediction.change?.mean ?? 0) <= -worthwhile) for (const factor of raises) yield* by(factor);
  }
  if (shareOf(simulation, knob) >= idleBelow) return;
  const half = yield* by(0.5);
  if ((half.prediction.change?.high ?? 0) >= noSlower) yield* by(0.75);
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

/** Plays settings on the same seeds, each once. */
class Trial {
  readonly others: Prediction[] = [];
  readonly #tried: Measured[] = [];
  readonly #inputs: readonly SimulationInput[];
  readonly #maxSettings: number;
  #done = 0;

  constructor(inputs: readonly SimulationInput[], maxSettings: number) {
    this.#inputs = inputs;
    this.#maxSettings = maxSettings;
  }

  /** @param before the setting to compare with; null = this is it */
  *predict(setting: Setting, before: Measured | null): Generator<AdviceProgress, Measured> {
    // Factors of small bounds often round to the same one.
    const known = this.#tried.find(({ prediction }) => isSame(setting, prediction.setting));
    if (known !== undefined) return known;
    if (before !== null && this.others.length >= this.#maxSettings) return before;
    const simulations: Simulation[] = [];
    for (const input of this.#inputs) {
      simulations.push(simulate(withSetting(input, setting)));
      this.#done += 1;
      yield { done: this.#done };
    }
    const measured = measuredOf(setting, simulations, before);
    this.#tried.push(measured);
    if (before !== null) this.others.push(measured.prediction);
    return measured;
  }
}

const isSame = (a: Setting, b: Setting): boolean =>
  a.dispatcher === b.dispatcher && knobs.every((knob) => knobValue(a, knob) === knobValue(b, knob));

function measuredOf(setting: Setting, simulations: readonly Simulation[], before: Measured | null): Measured {
  const times = simulations.map(stepMsOf);
  const [simulation] = simulations;
  if (simulation === undefined) throw new RangeError("at least one seed");
  const change = before === null ? null : changeInterval(before.times, times);
  return { prediction: { setting, stepMs: meanInterval(times), change, simulation }, times };
}

/** How much of the knob's pool was in use, 0–1. */
const shareOf = ({ busy }: Simulation, knob: Knob): number =>
  ({ init: busy.initSlot, run: busy.runSlot, evaluate: busy.gradeSlot, sandboxes: busy.sandbox })[knob];

/** The best policy with every raise that gains by itself; null when that is one setting which was tried already. */
function combined(present: Prediction, others: readonly Prediction[]): Setting | null {
  const gains = others
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
