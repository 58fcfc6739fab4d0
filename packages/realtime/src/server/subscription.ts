/**
 * One socket's place in one run's log. It sends what follows its cursor, at most 500 events a message, and waits while the
 * socket's own buffer is full: a slow client costs no memory here, it is simply further behind.
 *
 * Invariant: messages are consecutive by `seq`, from the `after` it was made with.
 */
import type { EventsMessage } from "@rolldeck/contracts/wire/socket";
import type { EventTail } from "./event-tail.ts";

export interface Outlet {
  /** False while the transport's buffer is over its limit. */
  ready(): boolean;
  /** Resolves when `ready` may be true again, or the socket is gone. */
  drained(): Promise<void>;
  send(message: EventsMessage): void;
}

export class Subscription {
  #cursor: number;
  #pumping = false;
  #again = false;
  #stopped = false;
  readonly #leave: () => void;

  constructor(
    private readonly tail: EventTail,
    private readonly outlet: Outlet,
    private readonly runId: string,
    start: { readonly after: number; readonly head: number },
    private readonly onError: (error: unknown) => void,
  ) {
    this.#cursor = start.after;
    this.#leave = tail.follow(runId, start.head, () => void this.pump());
  }

  stop(): void {
    this.#stopped = true;
    this.#leave();
  }

  async pump(): Promise<void> {
    this.#again = true;
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      while (this.#again && !this.#stopped) {
        this.#again = false;
        await this.#sendAll();
      }
    } catch (error) {
      this.onError(error);
    } finally {
      this.#pumping = false;
    }
  }

  async #sendAll(): Promise<void> {
    while (!this.#stopped) {
      while (!this.outlet.ready() && !this.#stopped) await this.outlet.drained();
      const events = await this.tail.after(this.runId, this.#cursor);
      const last = events.at(-1);
      if (!last || this.#stopped) return;
      this.outlet.send({ runId: this.runId, events, head: Math.max(last.seq, this.tail.headOf(this.runId)) });
      this.#cursor = last.seq;
      if (last.seq >= this.tail.headOf(this.runId)) return;
    }
  }
}
