/**
 * Estimates of what `async` is worth, each made once in a thread of its own. Invariants: one at a time, none longer than its limit;
 * whoever asks while another is made is not kept waiting, but told that there is none; the newest fifty are remembered, one that could
 * not be made for a minute: the machine may have been busy.
 */
import type { OverlapEstimate } from "@rolldeck/dispatch/simulator/overlap-estimate";
import { askThread } from "./ask-thread.ts";
import type { OverlapTask } from "./thread-message.ts";

const maxKept = 50;

export class OverlapEstimates {
  readonly #known = new Map<string, Promise<OverlapEstimate | null>>();
  readonly #limitMs: number;
  readonly #noneMs: number;
  #making: string | null = null;

  constructor(limitMs = 10_000, noneMs = 60_000) {
    this.#limitMs = limitMs;
    this.#noneMs = noneMs;
  }

  /** Null: it would take too long, or another is being made. Never fails. */
  of(task: OverlapTask): Promise<OverlapEstimate | null> {
    const key = JSON.stringify(task);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#making !== null) return Promise.resolve(null);
    this.#making = key;
    const made = this.#make(task).finally(() => {
      this.#making = null;
    });
    this.#known.set(key, made);
    void made.then((estimate) => {
      if (estimate === null) setTimeout(() => this.#known.delete(key), this.#noneMs).unref();
    });
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxKept && oldest !== undefined) this.#known.delete(oldest);
    return made;
  }

  async #make(task: OverlapTask): Promise<OverlapEstimate | null> {
    // A config is checked all the same: without an estimate its warning says so.
    const answer = await askThread(task, { limitMs: this.#limitMs }).catch(() => null);
    return answer !== null && "overlap" in answer ? answer.overlap : null;
  }
}
