/** Time in which policies are sampled: it stands still while the GPU that samples is the trainer's. */
import { waited } from "../dispatch/timed-runtime.ts";

export class SamplingTime {
  /** Aborts when sampling is halted. */
  #going = new AbortController();
  #goesOn: Promise<void> = Promise.resolve();
  #goOn: () => void = () => undefined;

  halt(halted: boolean): void {
    if (halted === this.#going.signal.aborted) return;
    if (halted) {
      this.#goesOn = new Promise((resolve) => {
        this.#goOn = resolve;
      });
      this.#going.abort();
    } else {
      this.#going = new AbortController();
      this.#goOn();
    }
  }

  /** Resolves after so much time of sampling. @throws the signal's reason */
  async pass(ms: number, signal: AbortSignal): Promise<void> {
    for (let leftMs = ms; leftMs > 0; ) {
      await this.#goesOn;
      const halted = this.#going.signal;
      const from = performance.now();
      try {
        await waited(leftMs, AbortSignal.any([signal, halted]));
        return;
      } catch (error) {
        if (signal.aborted || !halted.aborted) throw error;
        leftMs -= performance.now() - from;
      }
    }
  }
}
