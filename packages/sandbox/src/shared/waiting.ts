/** Waiting that ends: on an abort, after a while, or for a place among so many. */
import { setMaxListeners } from "node:events";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { orAborted } from "@rolldeck/contracts/ports/or-aborted";

/** Rejects with the signal's reason as soon as it is aborted; `work` goes on unseen. One signal may stop any number of things. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  setMaxListeners(0, signal);
  return orAborted(work, signal);
}

/** @throws BoundaryError("sandbox", "unavailable") when `work` takes longer than `limitMs`; it goes on unseen */
export const within = <T>(work: Promise<T>, limitMs: number, what: string): Promise<T> =>
  inTime(work, limitMs, () => {
    const message = `${what}: no answer in ${limitMs} ms`;
    return new BoundaryError("sandbox", "unavailable", message, { retryable: true });
  });

/** @throws what `trouble` makes when `work` takes longer than `limitMs`; it goes on unseen */
export async function inTime<T>(work: Promise<T>, limitMs: number, trouble: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(trouble()), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
    late.catch(() => undefined);
  }
}

/** A pause that an abort cuts short, silently: the caller looks at its signal. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}

interface Emitter {
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** Until a stream has room again, or will never have. */
export function roomIn(stream: Emitter): Promise<void> {
  return new Promise((resolve) => {
    const events = ["drain", "close", "error"];
    const done = (): void => {
      for (const event of events) stream.off(event, done);
      resolve();
    };
    for (const event of events) stream.on(event, done);
  });
}

/** One after the other, in order. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

/** At most so many at once; others wait in order. */
export class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** @throws the signal's reason when it is aborted while waiting */
  async use<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#take(signal);
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  #take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const turn = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        const at = this.#waiting.indexOf(turn);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(turn);
    });
  }
}
