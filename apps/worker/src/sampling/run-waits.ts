/**
 * Says on a run's page what its rollouts wait for. 512 rollouts that wait for one server are one sentence: a run hears of a reason
 * once a minute at most, and of short waits never.
 */
export interface Wait {
  /** Wall clock, milliseconds. */
  readonly untilMs: number;
  readonly reason: string;
  /** How long the model has been away already, milliseconds; absent where it is not. */
  readonly awayMs?: number;
}
export interface RunWaitsOptions {
  /** Hears of every wait. */
  readonly count: (waitMs: number) => void;
  readonly note: (runId: string, message: string) => Promise<void>;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
  /** Shorter waits are not worth a word. Default 2 000. */
  readonly minMs?: number;
  /** Default 60 000. */
  readonly everyMs?: number;
}

/** Runs remembered at most; the oldest are forgotten, and may then hear a reason twice. */
const maxRuns = 1_000;

export class RunWaits {
  readonly #options: RunWaitsOptions;
  readonly #saidAt = new Map<string, number>();

  constructor(options: RunWaitsOptions) {
    this.#options = options;
  }

  /** For the samplers of one run; never throws and never waits. */
  of(runId: string): (wait: Wait) => void {
    return (wait) => this.#hear(runId, wait);
  }

  #hear(runId: string, { untilMs, reason, awayMs = 0 }: Wait): void {
    const { now, minMs = 2_000, everyMs = 60_000, count, note, onError } = this.#options;
    const at = now();
    count(Math.max(0, untilMs - at));
    if (Math.max(untilMs - at, awayMs) < minMs) return;
    const said = this.#saidAt.get(runId);
    if (said !== undefined && at - said < everyMs) return;
    this.#saidAt.delete(runId);
    this.#saidAt.set(runId, at);
    for (const oldest of this.#saidAt.keys()) {
      if (this.#saidAt.size <= maxRuns) break;
      this.#saidAt.delete(oldest);
    }
    const words =
      awayMs > 0
        ? `The model has been away for ${Math.round(awayMs / 1_000)} s`
        : `Sampling waits ${Math.ceil((untilMs - at) / 1_000)} s`;
    note(runId, `${words}: ${reason}`.slice(0, 900)).catch(onError);
  }
}
