/** A run's boot as its page shows it: phase, what is done of how much, seconds. At most two events a second and phase. */
import type { BootPhase } from "@rolldeck/contracts/events";
import type { Pool } from "@rolldeck/db/connect";
import { type BootProgress as BootRow, setBoot } from "@rolldeck/db/training/set-boot";

export interface Progress {
  readonly done: number;
  readonly total: number | null;
  readonly unit: string;
}
const minGapMs = 500;

export class BootProgress {
  readonly #write: (boot: BootRow) => Promise<void>;
  readonly #now: () => number;
  #phase: BootPhase | null = null;
  #phaseStartedAt = 0;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #last = "";

  constructor(write: (boot: BootRow) => Promise<void>, now: () => number) {
    this.#write = write;
    this.#now = now;
  }

  static of(pool: Pool, runId: string): BootProgress {
    return new BootProgress(
      (boot) => setBoot(pool, runId, boot),
      () => performance.now(),
    );
  }

  /** Milliseconds since the present phase began. */
  get phaseMs(): number {
    return this.#now() - this.#phaseStartedAt;
  }

  /** Writes a change of phase at once, other changes at most every half second, and nothing twice. */
  async report(phase: BootPhase, message: string, progress: Progress | null = null): Promise<void> {
    const now = this.#now();
    const entered = phase !== this.#phase;
    if (entered) {
      this.#phase = phase;
      this.#phaseStartedAt = now;
    }
    const said = `${message} ${progress?.done ?? ""} ${progress?.total ?? ""}`;
    const last = progress !== null && progress.done === progress.total;
    if (!entered && (said === this.#last || (!last && now - this.#writtenAt < minGapMs))) return;
    this.#last = said;
    this.#writtenAt = now;
    const { done = null, total = null, unit = null } = progress ?? {};
    await this.#write({ phase, message: message.slice(0, 480), done, total, unit, elapsedMs: this.phaseMs });
  }
}
