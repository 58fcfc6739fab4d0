import type { Hint } from "./hint.ts";

/** While the agent has taken fewer turns than it is asked to. */
export const dontStopEarly: Hint = ({ turns, earlyStepThreshold, maxTurns }) => {
  const more = Math.min(earlyStepThreshold, maxTurns) - turns;
  if (more < 1) return null;
  return `hint: don't stop early: take at least ${more} more ${more === 1 ? "turn" : "turns"} to check and improve the work`;
};
