import { finishWith, type Hint } from "./hint.ts";

/** Tokens that count as nearly nothing in a large context. */
const fewTokens = 3000;
/** … and the part of a small one that does. */
const smallPart = 1 / 8;

/** When an eighth of the context, or 3,000 tokens if that is less, is all that is left. */
export const contextNearlyFull: Hint = (facts) => {
  const left = facts.maxContextTokens - facts.contextTokens;
  if (left < 1 || left > Math.min(fewTokens, facts.maxContextTokens * smallPart)) return null;
  return `hint: the context is nearly full, about ${left} tokens are left; ask for no more long outputs, ${finishWith(facts)}`;
};
