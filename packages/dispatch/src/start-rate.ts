/**
 * How many rollouts may enter init now. Invariant: in any window of ceil(rate) ÷ rate seconds at most ceil(rate) enter, so the
 * mean rate is never above the config's and a burst is a second's worth.
 */
import type { RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";

export class StartRate {
  readonly #atMost: number;
  readonly #windowMs: number;
  readonly #now: number;
  /** Ascending; what was admitted and not taken yet counts as of now. */
  readonly #starts: number[];

  constructor({ now, config, recentStarts = [], rollouts }: RunSnapshot) {
    const rate = config.dispatcher.startsPerSecond;
    this.#atMost = rate === null ? Number.POSITIVE_INFINITY : Math.ceil(rate);
    this.#windowMs = rate === null ? 0 : (1_000 * Math.ceil(rate)) / rate;
    this.#now = now;
    this.#starts = rate === null ? [] : inWindow(recentStarts, now - this.#windowMs).concat(onTheirWay(rollouts, now));
  }

  /** When the next rollout may enter init: not after the snapshot's now = at once. */
  get nextAt(): number {
    if (this.#starts.length < this.#atMost) return this.#now;
    return (this.#starts[this.#starts.length - this.#atMost] ?? this.#now) + this.#windowMs;
  }

  get mayStart(): boolean {
    return this.nextAt <= this.#now;
  }

  /** One more enters now. */
  take(): void {
    if (this.#windowMs > 0) this.#starts.push(this.#now);
  }
}

const inWindow = (starts: readonly number[], after: number): number[] =>
  starts.filter((at) => at > after).sort((a, b) => a - b);

const onTheirWay = (rollouts: readonly RolloutSnapshot[], now: number): number[] =>
  rollouts
    .filter(({ stage, state, stageStartedAt }) => stage === "init" && state === "queued" && stageStartedAt === null)
    .map(() => now);
