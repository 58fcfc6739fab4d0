import { finishWith, type Hint } from "./hint.ts";

/** Every turn; the last one says what to do with it. */
export const stepsLeft: Hint = (facts) => {
  const left = facts.maxTurns - facts.turns;
  if (left < 1) return null;
  if (left === 1) return `hint: this is your last turn: ${finishWith(facts)} now`;
  return `hint: ${left} turns are left; plan so that you can ${finishWith(facts)} in time`;
};
