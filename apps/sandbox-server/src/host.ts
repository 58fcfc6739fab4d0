/** One host as the gateway knows it, over its connections. */
import type { HostHello } from "@rolldeck/sandbox/remote/frames";
import type { Link } from "@rolldeck/sandbox/remote/link";
import { Closings } from "./closings.ts";
import { StartRate } from "./start-rate.ts";

/** Image keys remembered of one host. */
const maxImages = 2_000;

export class Host {
  readonly hostId: string;
  readonly starts: StartRate;
  readonly closings: Closings;
  /** Monotonic milliseconds: when it first joined. */
  readonly joinedAtMs: number;
  hello: HostHello;
  /** Null while it is away. */
  link: Link | null = null;
  /** What it has has been asked for: only then is it given more. */
  listed = false;
  /** It has said once what it has: the rest is known since. */
  wasListed = false;
  draining = false;
  awaySinceMs: number | null = null;
  lost = false;
  /** It said that it is full. */
  coolUntilMs = 0;
  readonly #images = new Set<string>();

  constructor(
    hello: HostHello,
    startsPerSecond: number,
    nowMs: number,
    onTrouble: (message: string, error: unknown) => void,
  ) {
    this.hostId = hello.hostId;
    this.hello = hello;
    this.joinedAtMs = nowMs;
    this.starts = new StartRate(startsPerSecond, nowMs);
    this.closings = new Closings(
      () => this.link,
      (id, error) => onTrouble(`sandbox ${id} on ${this.name} was not closed`, error),
    );
  }

  get name(): string {
    return this.hello.name;
  }
  get state(): "here" | "joining" | "away" | "lost" {
    if (this.link !== null) return this.listed ? "here" : "joining";
    return this.lost ? "lost" : "away";
  }
  get images(): number {
    return this.#images.size;
  }
  accepting(nowMs: number): boolean {
    return this.link !== null && this.listed && !this.draining && nowMs >= this.coolUntilMs;
  }

  hasImage(key: string): boolean {
    return this.#images.has(key);
  }
  /** It was used there just now. */
  sawImage(key: string): void {
    this.#images.delete(key);
    this.#images.add(key);
    for (const oldest of this.#images) {
      if (this.#images.size <= maxImages) break;
      this.#images.delete(oldest);
    }
  }
  lostImage(key: string): void {
    this.#images.delete(key);
  }
}
