/** Which rollouts of a group stand side by side, and where they part. Pure. */
import type { RolloutDetail, TurnView } from "@rolldeck/contracts/api/rollouts";

export const mostColumns = 4;

type Siblings = RolloutDetail["siblings"];
/** The best and the worst of the others: what a rollout is read against first. */
export function usualSiblings(siblings: Siblings, own: string): string[] {
  const others = siblings.filter((each) => each.rolloutId !== own);
  const scored = others.filter((each) => each.reward !== null).toSorted((a, b) => (b.reward ?? 0) - (a.reward ?? 0));
  const [best] = scored;
  const worst = scored.at(-1);
  const chosen = [best, worst].flatMap((each) => each?.rolloutId ?? []);
  return chosen.length > 0 ? [...new Set(chosen)] : others.slice(0, 1).map((each) => each.rolloutId);
}

type Said = Pick<TurnView, "sampled" | "calls">;
/** The first place where the rollouts did not say the same; null when they agree as far as all of them go and end together. */
export function firstDivergence(rollouts: readonly (readonly Said[])[]): number | null {
  const longest = Math.max(0, ...rollouts.map((turns) => turns.length));
  for (let at = 0; at < longest; at += 1) {
    const said = rollouts.map((turns) => turns[at]?.sampled.text);
    if (said.some((text) => text !== said[0])) return at;
  }
  return null;
}
