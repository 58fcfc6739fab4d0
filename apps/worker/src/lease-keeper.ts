/**
 * Renews every claim this process holds, in one round every `everyMs`, and aborts what it could not renew.
 * Invariant: a claim whose signal has not aborted was renewed (or taken) less than `leaseMs` ago by this process's clock, so
 * while the database is away no work goes on that another worker may already have taken over.
 */
import { setMaxListeners } from "node:events";
import { StageAbort } from "./stage-abort.ts";

export interface HeldLease {
  /** Aborts with a StageAbort. */
  readonly signal: AbortSignal;
  abort(reason: StageAbort): void;
  /** No longer renewed. Idempotent. */
  release(): void;
}

export interface LeaseKeeperOptions<Claim> {
  /** Renews all in one go and returns those that are no longer ours. */
  renew(claims: readonly Claim[]): Promise<readonly Claim[]>;
  readonly everyMs: number;
  readonly leaseMs: number;
  /** Monotonic milliseconds. */
  now(): number;
  onError(error: unknown): void;
}

interface Entry<Claim> {
  readonly claim: Claim;
  readonly runId: string;
  readonly controller: AbortController;
  renewedAt: number;
}

export class LeaseKeeper<Claim> {
  readonly #options: LeaseKeeperOptions<Claim>;
  readonly #entries = new Map<string, Entry<Claim>>();
  #timer: NodeJS.Timeout | null = null;
  #round: Promise<void> | null = null;

  constructor(options: LeaseKeeperOptions<Claim>) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.renewAll(), this.#options.everyMs);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** @param key unique per claim. The lease was just taken: its time counts from now. */
  hold(key: string, runId: string, claim: Claim): HeldLease {
    const controller = new AbortController();
    // A stage may wait for any number of things at once.
    setMaxListeners(0, controller.signal);
    const entry: Entry<Claim> = { claim, runId, controller, renewedAt: this.#options.now() };
    this.#entries.set(key, entry);
    return {
      signal: controller.signal,
      abort: (reason) => controller.abort(reason),
      release: () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    };
  }

  /** Runs in which this process holds a claim. */
  runIds(): string[] {
    return [...new Set([...this.#entries.values()].map((entry) => entry.runId))];
  }

  /** Aborts every claim of one run. */
  abortRun(runId: string, reason: StageAbort): void {
    for (const entry of this.#entries.values()) if (entry.runId === runId) entry.controller.abort(reason);
  }

  abortAll(reason: StageAbort): void {
    for (const entry of this.#entries.values()) entry.controller.abort(reason);
  }

  /** One round; concurrent callers share it. */
  renewAll(): Promise<void> {
    this.#round ??= this.#renewRound().finally(() => {
      this.#round = null;
    });
    return this.#round;
  }

  async #renewRound(): Promise<void> {
    const held = [...this.#entries.values()].filter((entry) => !entry.controller.signal.aborted);
    if (held.length === 0) return;
    // Counted from before the statement: the database set the lease no earlier than this.
    const sentAt = this.#options.now();
    try {
      const lost = new Set(await this.#options.renew(held.map((entry) => entry.claim)));
      for (const entry of held) {
        if (lost.has(entry.claim)) entry.controller.abort(new StageAbort("fenced", "the lease was lost"));
        else entry.renewedAt = sentAt;
      }
    } catch (error) {
      this.#options.onError(error);
      this.#abortExpired(held);
    }
  }

  #abortExpired(held: readonly Entry<Claim>[]): void {
    const expired = this.#options.now() - this.#options.leaseMs;
    for (const entry of held) {
      if (entry.renewedAt <= expired) {
        entry.controller.abort(new StageAbort("fenced", "the lease could not be renewed in time"));
      }
    }
  }
}
