/** Predictions in words: what to change, and by how much a step would be shorter. */
import type { Prediction } from "./prediction.ts";
import { type Knob, knobs, knobValue, type Setting } from "./scenario.ts";
import type { Interval } from "./step-time.ts";

/** A gain below this is not worth a change, and a loss below it is none. */
export const worthwhile = 0.02;
export const noSlower = 0.01;

/** The strongest first. @returns one sentence that says so when nothing is worth changing */
export function adviceSentences(present: Prediction, others: readonly Prediction[]): string[] {
  const policy = bestPolicy(present, others);
  const together = bestTogether(present, others);
  const raised = knobs.flatMap((knob) => raise(present, others, knob) ?? []);
  const gains = [policy, together, ...raised]
    .filter((gain) => gain !== null)
    .sort((a, b) => changeOf(a.prediction) - changeOf(b.prediction))
    .map(({ prediction, text }) => `${text}: ${percentText(prediction.change)}`);
  const lowered = knobs.flatMap((knob) => lower(present, others, knob) ?? []);
  if (gains.length > 0) return [...gains, ...lowered];
  return [`nothing that was tried makes a step ${worthwhile * 100} % shorter`, ...lowered];
}

interface Gain {
  readonly prediction: Prediction;
  readonly text: string;
}
const changeOf = ({ change }: Prediction): number => change?.mean ?? 0;
/** Large enough, and surely a gain. */
const isGain = ({ change }: Prediction): boolean => change !== null && change.mean <= -worthwhile && change.high < 0;

/** Knobs in which two settings differ. */
const differing = (a: Setting, b: Setting): Knob[] => knobs.filter((knob) => knobValue(a, knob) !== knobValue(b, knob));

function bestPolicy(present: Prediction, others: readonly Prediction[]): Gain | null {
  const prediction = others.find((other) => isGain(other) && differing(other.setting, present.setting).length === 0);
  if (prediction === undefined) return null;
  return { prediction, text: `use ${prediction.setting.dispatcher} instead of ${present.setting.dispatcher}` };
}

/** The smallest raise of one knob that gains nearly as much as its best. */
function raise(present: Prediction, others: readonly Prediction[], knob: Knob): Gain | null {
  const gains = only(present, others, knob)
    .filter((other) => isGain(other) && knobValue(other.setting, knob) > knobValue(present.setting, knob))
    .sort((a, b) => knobValue(a.setting, knob) - knobValue(b.setting, knob));
  const best = Math.min(...gains.map(changeOf));
  const prediction = gains.find((gain) => changeOf(gain) <= best + worthwhile);
  if (prediction === undefined) return null;
  return {
    prediction,
    text: `raise ${knob} from ${knobValue(present.setting, knob)} to ${knobValue(prediction.setting, knob)}`,
  };
}

/** The smallest value of one knob that is no slower. */
function lower(present: Prediction, others: readonly Prediction[], knob: Knob): string | null {
  const now = knobValue(present.setting, knob);
  const enough = only(present, others, knob)
    .filter(({ change, setting }) => knobValue(setting, knob) < now && change !== null && change.high < noSlower)
    .map(({ setting }) => knobValue(setting, knob));
  if (enough.length === 0) return null;
  const least = Math.min(...enough);
  return `lower ${knob} from ${now} to ${least}: no slower, and ${now - least} are left to other runs`;
}

/** Settings that differ from the present one in this knob alone. */
const only = (present: Prediction, others: readonly Prediction[], knob: Knob): Prediction[] =>
  others.filter(({ setting }) => {
    const [one, ...more] = differing(setting, present.setting);
    return setting.dispatcher === present.setting.dispatcher && one === knob && more.length === 0;
  });

function bestTogether(present: Prediction, others: readonly Prediction[]): Gain | null {
  const isTogether = ({ setting }: Prediction): boolean => {
    const parts = differing(setting, present.setting).length;
    return parts + (setting.dispatcher === present.setting.dispatcher ? 0 : 1) >= 2;
  };
  const prediction = others.find((other) => isGain(other) && isTogether(other));
  if (prediction === undefined) return null;
  const { setting } = prediction;
  const parts = differing(setting, present.setting).map(
    (knob) => `${knob} ${knobValue(present.setting, knob)} → ${knobValue(setting, knob)}`,
  );
  if (setting.dispatcher !== present.setting.dispatcher) parts.unshift(setting.dispatcher);
  return { prediction, text: `together (${parts.join(", ")})` };
}

/** `−18 % step time (−21 to −15 %)` */
function percentText(change: Interval | null): string {
  if (change === null) return "";
  return `${percent(change.mean)} % step time (${percent(change.low)} to ${percent(change.high)} %)`;
}

const percent = (share: number): string => {
  const rounded = Math.round(share * 100);
  return rounded < 0 ? `−${-rounded}` : rounded > 0 ? `+${rounded}` : "0";
};
