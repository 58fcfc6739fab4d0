/** Updates that take time: an update's result is there that long after its first training request, whatever lay between. */
import { setTimeout as sleep } from "node:timers/promises";

/** Of one poll, so that the caller's own limit is never reached. */
const maxHoldMs = 10_000;

export interface UpdateTimeOptions {
  readonly updateMs?: () => number;
  readonly onUpdate?: (underWay: boolean) => void;
}

export class UpdateTime {
  readonly #options: UpdateTimeOptions;
  #beganAt: number | null = null;

  constructor(options: UpdateTimeOptions) {
    this.#options = options;
  }

  /** When the result of a training request that comes now is there, on this process's monotonic clock. */
  readyAt(name: string): number {
    const now = performance.now();
    const { updateMs, onUpdate } = this.#options;
    if (updateMs === undefined || (name !== "forward_backward" && name !== "optim_step")) return now;
    if (this.#beganAt === null) onUpdate?.(true);
    this.#beganAt ??= now;
    if (name === "forward_backward") return now;
    const readyAt = Math.max(now, this.#beganAt + updateMs());
    this.#beganAt = null;
    setTimeout(() => onUpdate?.(false), readyAt - now).unref();
    return readyAt;
  }

  /** A poll is held open until then, as a real server holds it: asking again and again would add its pauses to the update. */
  async hold(readyAt: number): Promise<void> {
    if (this.#options.updateMs === undefined) return;
    const leftMs = readyAt - performance.now();
    // Timers may end a little early.
    if (leftMs > 0) await sleep(Math.min(leftMs + 1, maxHoldMs));
  }
}
