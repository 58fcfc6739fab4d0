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

export interface Column {
  readonly turns: readonly Pick<TurnView, "sampled">[];
  /** These are all of its turns: it is over, and none is left to load. */
  readonly complete: boolean;
}
/** The first place where the rollouts did not say the same, as far as is known; null when they agree. */
export function firstDivergence(columns: readonly Column[]): number | null {
  const longest = Math.max(0, ...columns.map(({ turns }) => turns.length));
  for (let at = 0; at < longest; at += 1) {
    // A turn that is not there yet parts from nothing.
    const there = columns.filter(({ turns, complete }) => complete || at < turns.length);
    const said = there.map(({ turns }) => wordsOf(turns[at]));
    if (said.some((words) => words !== said[0])) return at;
  }
  return null;
}

/** Cut previews that begin alike may still differ in length. */
const wordsOf = (turn: Column["turns"][number] | undefined): string | null =>
  turn ? `${turn.sampled.cutCharacters} ${turn.sampled.text}` : null;
