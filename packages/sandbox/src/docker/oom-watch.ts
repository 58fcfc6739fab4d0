/**
 * When the kernel last ended a process of a container for memory. Containers do not say so of commands that were started in them
 * later; the daemon's events do. One stream of events per runtime, opened again when it breaks; what happened in between is asked
 * for by its time.
 */
import type Docker from "dockerode";
import { pause, within } from "../shared/waiting.ts";
import { EventAnswer } from "./answers.ts";

const maxLine = 64 * 1024;
const maxKept = 10_000;
/** How long a command waits for the stream of events, at most. */
const openMs = 10_000;

export class OomWatch {
  readonly #docker: Docker;
  readonly #label: string;
  /** Time of the newest, milliseconds of `performance.now()`, by container. */
  readonly #seenMs = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  #stream: { destroy(): void } | null = null;
  #opening: Promise<void> | null = null;
  #closed = false;
  /** Seconds since 1970 up to which events were read. */
  #readToS: number | null = null;

  constructor(docker: Docker, label: string) {
    this.#docker = docker;
    this.#label = label;
  }

  /** Resolves when events are read, or can't be: a missing word about memory must not stop a command. */
  async ready(): Promise<void> {
    if (this.#stream !== null || this.#closed) return;
    this.#opening ??= this.#open()
      .catch(() => undefined)
      .finally(() => {
        this.#opening = null;
      });
    await within(this.#opening, openMs, "reading the daemon's events").catch(() => undefined);
  }

  async #open(): Promise<void> {
    const stream = await this.#docker.getEvents({
      filters: { type: ["container"], event: ["oom"], label: [this.#label] },
      ...(this.#readToS === null ? {} : { since: this.#readToS }),
    });
    this.#readToS = Math.floor(Date.now() / 1000);
    if ("socket" in stream && stream.socket instanceof Object && "unref" in stream.socket) {
      if (typeof stream.socket.unref === "function") stream.socket.unref();
    }
    let line = "";
    stream.on("data", (bytes: Buffer) => {
      line += bytes.toString();
      for (let end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
        this.#take(line.slice(0, end));
        line = line.slice(end + 1);
      }
      if (line.length > maxLine) line = "";
    });
    const over = (): void => {
      this.#stream = null;
    };
    stream.on("error", over).on("close", over).on("end", over);
    this.#stream = { destroy: () => "destroy" in stream && typeof stream.destroy === "function" && stream.destroy() };
    if (this.#closed) this.#stream.destroy();
  }

  #take(line: string): void {
    let said: unknown;
    try {
      said = JSON.parse(line);
    } catch {
      return;
    }
    const event = EventAnswer.safeParse(said);
    const id = event.data?.Actor?.ID;
    if (id === undefined) return;
    this.#readToS = Math.floor(Date.now() / 1000);
    this.#seenMs.delete(id);
    this.#seenMs.set(id, performance.now());
    const [oldest] = this.#seenMs.keys();
    if (this.#seenMs.size > maxKept && oldest !== undefined) this.#seenMs.delete(oldest);
    for (const wake of this.#waiting) wake();
  }

  /** Whether it happened after `sinceMs` of `performance.now()`; word of it may come up to `waitMs` later. */
  async happened(container: string, sinceMs: number, waitMs: number): Promise<boolean> {
    const untilMs = performance.now() + waitMs;
    for (;;) {
      if ((this.#seenMs.get(container) ?? Number.NEGATIVE_INFINITY) >= sinceMs) return true;
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return false;
      const woken = new AbortController();
      const wake = (): void => woken.abort();
      this.#waiting.add(wake);
      await pause(leftMs, woken.signal);
      this.#waiting.delete(wake);
    }
  }

  forget(container: string): void {
    this.#seenMs.delete(container);
  }

  close(): void {
    this.#closed = true;
    this.#stream?.destroy();
    this.#stream = null;
  }
}
