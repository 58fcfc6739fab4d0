/**
 * Reward as colour: diverging around the mean of its group, so that better and worse siblings stand apart whatever the
 * scale of rewards. Pure; returns CSS over the theme's tokens.
 */
/** −1 … 1: how far a reward lies from its group's mean, in units of the largest distance on the page. */
export function deviation(reward: number | null, mean: number | null, largest: number): number | null {
  if (reward === null || mean === null) return null;
  if (largest <= 1e-9) return 0;
  return Math.max(-1, Math.min(1, (reward - mean) / largest));
}

export function rewardColour(at: number | null): string {
  if (at === null) return "transparent";
  const end = at < 0 ? "var(--reward-low)" : "var(--reward-high)";
  return `color-mix(in oklab, ${end} calc(${Math.abs(at).toFixed(3)} * var(--cell-strength)), var(--reward-mid))`;
}
