/** Axis arithmetic: domains from data, at most five ticks on round numbers, linear and log scales. Pure. */
export interface Scale {
  readonly domain: readonly [number, number];
  readonly ticks: readonly number[];
  readonly log: boolean;
  /** 0 at the low end, 1 at the high end. */
  position(value: number): number;
}

function niceStep(span: number, count: number): number {
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const fraction = raw / power;
  const nice = fraction <= 1 ? 1 : fraction <= 2 ? 2 : fraction <= 2.5 ? 2.5 : fraction <= 5 ? 5 : 10;
  return nice * power;
}

/** Removes the dust of binary fractions: 0.30000000000000004 → 0.3. */
const clean = (value: number): number => Number(value.toPrecision(12));

export function linearScale(values: readonly number[], options: { readonly integer?: boolean } = {}): Scale {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) [low, high] = [0, 1];
  const size = Math.max(Math.abs(low), Math.abs(high));
  // Differences below a billionth of the values are noise of the arithmetic: drawn as a constant.
  if (high - low <= size * 1e-9 || size < 1e-30) {
    const pad = size < 1e-30 ? 1 : size * 0.5;
    // A constant that is 0 or positive keeps 0 as its floor: below it nothing means anything.
    [low, high] = low >= 0 ? [Math.max(0, low - pad), high + pad] : [low - pad, high + pad];
  }
  let step = niceStep(high - low, 4);
  if (options.integer) step = Math.max(1, Math.ceil(step));
  let [from, to] = [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  // Round ends can add a step or two: take the next round step until five ticks are enough.
  while (Math.round((to - from) / step) > 4) {
    step = niceStep(step * 1.01, 1);
    if (options.integer) step = Math.max(1, Math.ceil(step));
    [from, to] = [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  }
  const ticks: number[] = [];
  for (let tick = from; tick <= to + step / 2; tick += step) ticks.push(clean(tick));
  const domain: [number, number] = [clean(from), clean(to)];
  return { domain, ticks, log: false, position: (value) => (value - domain[0]) / (domain[1] - domain[0]) };
}

/** Log scale over the positive values; null when there are none. */
export function logScale(values: readonly number[]): Scale | null {
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) return null;
  const low = Math.floor(Math.log10(positive.reduce((a, b) => Math.min(a, b))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(positive.reduce((a, b) => Math.max(a, b)))));
  const every = Math.ceil((high - low) / 4);
  const ticks: number[] = [];
  for (let power = low; power <= high; power += every) ticks.push(clean(10 ** power));
  return {
    domain: [10 ** low, 10 ** high],
    ticks,
    log: true,
    position: (value) => (Math.log10(Math.max(value, 1e-300)) - low) / (high - low),
  };
}

/** Ticks of a step axis: evenly spaced whole numbers inside the domain, at most about `count`. */
export function stepTicks([low, high]: readonly [number, number], count: number): number[] {
  if (low === high) return [low];
  const raw = Math.max(1, (high - low) / Math.max(1, count));
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power;
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}
