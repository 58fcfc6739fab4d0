/**
 * A server that hides tokens counts prompts with its own template, so its number can't be held against ours. Its numbers can be held
 * against each other: a rollout's prompt that grew by our count must not shrink by the server's, or it cut the front off. Pure.
 */
import type { TurnNote } from "@rolldeck/contracts/segments";

interface Counted {
  readonly ours: number;
  readonly theirs: number;
}
/** Rollouts remembered at most; the one heard of longest ago is forgotten first. */
const maxRollouts = 8_192;

export class PromptCounts {
  readonly #last = new Map<string, Counted>();

  /** @param theirs null when the server tells no counts @returns a note when the server saw less than before */
  see(affinityKey: string, ours: number, theirs: number | null): TurnNote | null {
    if (theirs === null) return null;
    const before = this.#last.get(affinityKey);
    this.#last.delete(affinityKey);
    this.#last.set(affinityKey, { ours, theirs });
    if (this.#last.size > maxRollouts) {
      for (const [oldest] of this.#last) {
        this.#last.delete(oldest);
        break;
      }
    }
    if (before === undefined || ours <= before.ours || theirs >= before.theirs) return null;
    const message = `the prompt grew from ${before.ours} to ${ours} tokens and the server counts ${theirs} after ${before.theirs}: it seems to cut it`;
    return { kind: "drift", message };
  }
}
