/**
 * The one place where requests to model servers are repeated. Several endpoints and keys stand behind it; a rollout stays on its
 * own while that is well, and moves to its next choice when it is not.
 *
 * Invariants:
 * - One call makes at most `maxTries` tries, whichever endpoints they go to.
 * - Nobody is asked inside a time that it forbade (Retry-After), by any call of this object, nor while its breaker is open.
 * - An abort ends a call at any moment, in a pause as in a try, with the signal's own reason.
 * - What fails is a BoundaryError("model-server") with its cause, or whatever error the try called final.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import {
  type Breaker,
  type BreakerPolicy,
  closedBreaker,
  readyAtMs,
  whenAnswered,
  whenAsked,
  whenDown,
} from "./breaker.ts";
import { pause, TryTimeout, withDeadline } from "./deadline.ts";
import { rankTargets } from "./rank-targets.ts";
import {
  afterRestMs,
  backOffMs,
  brokenLimit,
  type Limit,
  type Retry,
  type RetryPolicy,
  type Try,
} from "./retry-policy.ts";

/** An address with a key, or one of several. `name` is shown to people: never the key itself. */
export interface CallTarget {
  readonly name: string;
}
/** A call is held up; `untilMs` is the process's wall clock. */
export interface Wait {
  readonly untilMs: number;
  readonly reason: string;
}
export interface ResilientOptions<T extends CallTarget> {
  readonly targets: readonly [T, ...T[]];
  readonly policy: RetryPolicy;
  readonly breaker: BreakerPolicy;
  /** May whoever called try again later by itself, once this layer gave up? */
  readonly retryableAfter: boolean;
  /** Monotonic, milliseconds. */
  readonly now?: () => number;
  readonly wallNow?: () => number;
  /** In [0, 1). */
  readonly random?: () => number;
  readonly sleep?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}
export interface ResilientCall<T extends CallTarget, R> {
  readonly affinityKey: string;
  readonly signal?: AbortSignal;
  readonly policy?: Partial<RetryPolicy>;
  /** Looks whether a server is there: goes past an open breaker, and closes it when answered. */
  readonly probe?: boolean;
  readonly onWait?: ((wait: Wait) => void) | undefined;
  readonly attempt: (target: T, signal: AbortSignal | undefined) => Promise<Try<R>>;
}

interface TargetState<T> {
  readonly target: T;
  breaker: Breaker;
  /** Not to be asked before: by its own word, or a cap's length after a word beyond the cap. */
  restUntilMs: number;
  /** Its own word in full. */
  forbiddenUntilMs: number;
  lastRetry: Retry | null;
}
interface Running {
  readonly policy: RetryPolicy;
  readonly startedAtMs: number;
  readonly tried: Set<number>;
  tries: number;
  failingSinceMs: number;
  last: Retry | null;
}

export class ResilientCalls<T extends CallTarget> {
  readonly #options: ResilientOptions<T>;
  readonly #states: readonly TargetState<T>[];
  readonly #names: readonly string[];
  readonly #now: () => number;
  readonly #wallNow: () => number;
  readonly #random: () => number;
  readonly #sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;

  constructor(options: ResilientOptions<T>) {
    this.#options = options;
    this.#states = options.targets.map((target) => ({
      target,
      breaker: closedBreaker,
      restUntilMs: Number.NEGATIVE_INFINITY,
      forbiddenUntilMs: Number.NEGATIVE_INFINITY,
      lastRetry: null,
    }));
    this.#names = options.targets.map(({ name }) => name);
    this.#now = options.now ?? (() => performance.now());
    this.#wallNow = options.wallNow ?? (() => Date.now());
    this.#random = options.random ?? Math.random;
    this.#sleep = options.sleep ?? pause;
  }

  /** @throws BoundaryError("model-server"), the try's final error, or the signal's reason */
  async call<R>(call: ResilientCall<T, R>): Promise<R> {
    const startedAtMs = this.#now();
    const policy = { ...this.#options.policy, ...call.policy };
    const running: Running = {
      policy,
      startedAtMs,
      tried: new Set(),
      tries: 0,
      failingSinceMs: startedAtMs,
      last: null,
    };
    const ranked = rankTargets(this.#names, call.affinityKey);
    for (;;) {
      call.signal?.throwIfAborted();
      const index = await this.#turn(call, running, ranked);
      const outcome = await this.#try(call, running, index);
      if (outcome.is === "done") return outcome.value;
      if (outcome.is === "failed") throw outcome.error;
    }
  }

  /** Waits until a target may be asked. @returns its index */
  async #turn<R>(call: ResilientCall<T, R>, running: Running, ranked: readonly number[]): Promise<number> {
    let backedOff = running.last === null;
    for (;;) {
      const now = this.#now();
      const { index, readyMs } = this.#soonest(call, running, ranked, now);
      // Another endpoint is asked at once: its turn says nothing about the one that failed.
      const fresh = !running.tried.has(index) && running.tries > 0;
      const restMs = readyMs - now;
      const chance = this.#random();
      const pauseMs = restMs > 0 ? afterRestMs(running.policy, restMs, running.tries, chance) : 0;
      const dueMs = backedOff || fresh ? pauseMs : Math.max(pauseMs, backOffMs(running.policy, running.tries, chance));
      const state = this.#states[index];
      const because = state?.lastRetry ?? running.last;
      const forbiddenMs = restMs > 0 ? Math.max(restMs, (state?.forbiddenUntilMs ?? now) - now) : 0;
      const limit = brokenLimit(running.policy, running, now + Math.max(dueMs, forbiddenMs), now);
      // A first try that nothing holds up is made whatever the limits say.
      if (limit !== null && !(running.tries === 0 && dueMs === 0))
        throw this.#gaveUp(running, limit, because, forbiddenMs);
      if (dueMs === 0) return index;
      call.onWait?.({ untilMs: this.#wallNow() + dueMs, reason: because?.error.message ?? "the endpoint rests" });
      await this.#sleep(dueMs, call.signal);
      backedOff = true;
    }
  }

  /** The best-ranked target that may be asked now, untried ones first; else the one that may be asked soonest. */
  #soonest<R>(
    call: ResilientCall<T, R>,
    running: Running,
    ranked: readonly number[],
    now: number,
  ): { index: number; readyMs: number } {
    const choices = ranked.map((index) => ({ index, readyMs: this.#readyMs(index, call.probe === true, now) }));
    const ready = choices.filter(({ readyMs }) => readyMs <= now);
    const untried = ready.find(({ index }) => !running.tried.has(index));
    const [first = { index: 0, readyMs: now }, ...others] = choices;
    const soonest = others.reduce((best, choice) => (choice.readyMs < best.readyMs ? choice : best), first);
    return untried ?? ready[0] ?? soonest;
  }

  #readyMs(index: number, probe: boolean, now: number): number {
    const state = this.#states[index];
    if (state === undefined) return now;
    return Math.max(state.restUntilMs, probe ? now : readyAtMs(state.breaker, now));
  }

  async #try<R>(call: ResilientCall<T, R>, running: Running, index: number): Promise<Try<R>> {
    const state = this.#states[index] as TargetState<T>;
    const askedAtMs = this.#now();
    state.breaker = whenAsked(state.breaker, this.#options.breaker, askedAtMs);
    running.tries++;
    running.tried.add(index);
    const outcome = await this.#attempt(call, running, state.target, askedAtMs);
    const now = this.#now();
    if (outcome.is !== "retry") {
      state.breaker = whenAnswered();
      state.lastRetry = null;
      return outcome;
    }
    running.failingSinceMs = running.last === null ? now : running.failingSinceMs;
    running.last = outcome;
    state.lastRetry = outcome;
    state.breaker = outcome.down ? whenDown(state.breaker, this.#options.breaker, askedAtMs, now) : whenAnswered();
    if (outcome.retryAfterMs !== null) {
      const restMs = Math.min(outcome.retryAfterMs, running.policy.maxRetryAfterMs);
      state.restUntilMs = Math.max(state.restUntilMs, now + restMs);
      state.forbiddenUntilMs = now + outcome.retryAfterMs;
    }
    return outcome;
  }

  async #attempt<R>(call: ResilientCall<T, R>, running: Running, target: T, now: number): Promise<Try<R>> {
    const { tryMs, totalMs } = running.policy;
    const leftMs = totalMs === null ? null : running.startedAtMs + totalMs - now;
    const limitMs = tryMs === null ? leftMs : leftMs === null ? tryMs : Math.min(tryMs, leftMs);
    try {
      return await withDeadline(limitMs, call.signal, (signal) => call.attempt(target, signal));
    } catch (cause) {
      if (call.signal?.aborted) throw call.signal.reason;
      if (!(cause instanceof TryTimeout)) throw cause;
      const error = new BoundaryError("model-server", "timeout", `${target.name}: ${cause.message}`, {
        cause,
        retryable: true,
      });
      return { is: "retry", error, retryAfterMs: null, down: true };
    }
  }

  #gaveUp(running: Running, limit: Limit, because: Retry | null, restMs: number): BoundaryError {
    const said = because?.error ?? new BoundaryError("model-server", "unreachable", "no endpoint may be asked");
    const spentMs = this.#now() - running.startedAtMs;
    const message = `${said.message}${endOf(limit, running, restMs, spentMs)}`;
    return new BoundaryError("model-server", said.code, message, {
      cause: said,
      retryable: this.#options.retryableAfter,
      ...(restMs > 0 ? { retryAfterMs: running.last?.retryAfterMs ?? restMs } : {}),
    });
  }
}

function endOf(limit: Limit, { tries }: Running, restMs: number, spentMs: number): string {
  if (limit === "retry-after") return ` (asks to be left alone for ${inWords(restMs)}: too long to wait)`;
  const times = tries === 1 ? "" : `${tries} tries`;
  const long = spentMs < 100 ? "" : `${inWords(spentMs)}`;
  const parts = [times, long].filter((part) => part !== "");
  return parts.length === 0 ? "" : ` (${parts.join(" in ")})`;
}

function inWords(ms: number): string {
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${(ms / 3_600_000).toFixed(1)} h`;
}
