/**
 * Overfit-one-batch, judged: does the mean reward of the same instances rise from step to step by more than its own noise? Pure.
 * The slope is that of least squares; t = slope ÷ its standard error, n − 2 degrees of freedom.
 */
export interface OverfitVerdict {
  readonly ok: boolean;
  readonly steps: number;
  /** Mean rewards of the first and of the last quarter of the steps. */
  readonly first: number;
  readonly last: number;
  /** Reward per step. */
  readonly slope: number;
  /** null: the rewards lie on a line, so that there is no noise to hold the slope against. */
  readonly t: number | null;
  readonly text: string;
}

/** Fewer say nothing about noise. */
export const fewestOverfitSteps = 5;
const enough = 2;

/** @param rewards mean reward of each step of a run that is over, in order; all finite */
export function overfitVerdict(rewards: readonly number[]): OverfitVerdict {
  const steps = rewards.length;
  const quarter = Math.max(1, Math.floor(steps / 4));
  const first = mean(rewards.slice(0, quarter));
  const last = mean(rewards.slice(-quarter));
  const { slope, error } = fit(rewards);
  const t = error === 0 ? null : slope / error;
  const ok = steps >= fewestOverfitSteps && slope > 0 && (t === null || t >= enough);
  const figures = { steps, first, last, slope, t };
  return { ...figures, ok, text: words(rewards, figures, ok) };
}

function words(rewards: readonly number[], figures: Omit<OverfitVerdict, "ok" | "text">, ok: boolean): string {
  const { steps, first, last, slope, t } = figures;
  if (steps < fewestOverfitSteps)
    return `${steps} of at least ${fewestOverfitSteps} steps were made: too few to tell whether the reward rises.`;
  if (rewards.every((reward) => reward === rewards[0]))
    return `The reward was ${short(first)} in every step: there was nothing to learn, or nothing was learnt.`;
  const change = `from ${short(first)} to ${short(last)} over ${steps} steps of one batch`;
  const noise = t === null ? "without noise" : `t = ${short(t)}`;
  if (ok) return `The reward rose ${change} (${short(slope)} a step, ${noise}): rewards reach the weights.`;
  return `The reward did not rise beyond its noise, ${change} (${short(slope)} a step, ${noise}; ${enough} is asked for).`;
}

const short = (value: number): string => String(Number(value.toPrecision(3)));
const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/** Least squares over the steps 1…n; `error` is the slope's standard error, 0 where nothing is left over. */
function fit(values: readonly number[]): { readonly slope: number; readonly error: number } {
  const n = values.length;
  if (n < 3) return { slope: n < 2 ? 0 : (values[1] ?? 0) - (values[0] ?? 0), error: 0 };
  const middle = (n + 1) / 2;
  const centre = mean(values);
  const spread = values.reduce((sum, _, at) => sum + (at + 1 - middle) ** 2, 0);
  const slope = values.reduce((sum, value, at) => sum + (at + 1 - middle) * (value - centre), 0) / spread;
  const rest = values.reduce((sum, value, at) => sum + (value - centre - slope * (at + 1 - middle)) ** 2, 0);
  // What rounding leaves of a straight line is no noise.
  const scale = Math.max(...values.map(Math.abs), Number.MIN_VALUE);
  return { slope, error: Math.sqrt(rest) <= 1e-9 * scale ? 0 : Math.sqrt(rest / (n - 2) / spread) };
}
