/**
 * Exponential smoothing with its start corrected, by distance in x: with weight w a point one step older counts w times as
 * much, a point d steps older w^d, so that bucketed and irregular series are smoothed alike. Pure; missing stays missing.
 * @param weight 0…1, 0 = off
 */
export function smooth(
  points: readonly { readonly x: number; readonly value: number | null }[],
  weight: number,
): (number | null)[] {
  let sum = 0;
  let mass = 0;
  let lastX: number | null = null;
  return points.map(({ x, value }) => {
    if (value === null || weight <= 0) return value;
    const decay = lastX === null ? 0 : weight ** Math.max(0, x - lastX);
    lastX = x;
    sum = sum * decay + value;
    mass = mass * decay + 1;
    return sum / mass;
  });
}

export const smoothingLevels = [0, 0.6, 0.9] as const;
export type Smoothing = (typeof smoothingLevels)[number];
export function nextSmoothing(level: number): Smoothing {
  const at = smoothingLevels.findIndex((each) => Math.abs(each - level) < 1e-9);
  return smoothingLevels[(at + 1) % smoothingLevels.length] ?? 0;
}
