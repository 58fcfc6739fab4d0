/**
 * The sampler a rollout sees: it waits, bounded and abortable, while the run's model is away (its server restarts, the model is
 * being re-adopted). A turn uses the version that serves when it starts and records it.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SampleRequest, SampleResult, Sampler } from "@rolldeck/contracts/ports/sampler";
import type { Serving, WatchedRun } from "../run-watch.ts";
import { sleep } from "../wait-for.ts";
import type { Wait } from "./run-waits.ts";

export interface WaitingSamplerOptions {
  readonly runId: string;
  /** The run as of now, at most half a second old. */
  watch(runId: string): Promise<WatchedRun | null>;
  /** `onWait` hears when the sampler itself holds a sample up. */
  samplerFor(serving: Serving, onWait: (wait: Wait) => void): Sampler;
  /** Hears of every wait. */
  readonly onWait?: (wait: Wait) => void;
  /** Hears of time that went to the server's absence, milliseconds: waits as they begin, tries that failed once they have. */
  readonly onLost?: (ms: number) => void;
  /** Called before each try, and while nothing is asked of the server; throws when the worker is to stop at a turn boundary. */
  beforeTry(): void;
  /** How long the model may be away before the rollout gives up, milliseconds. */
  readonly maxAwayMs: number;
  readonly pauseMs: number;
  now(): number;
  /** Milliseconds of the wall clock. Default: this process's. */
  wallNow?(): number;
}

/** The session or model is not there (any more): another version may serve in a moment. */
const gone: ReadonlySet<string> = new Set(["not_found", "unknown_model", "conflict", "busy", "no_version"]);

/** The server is there and fails on this very request: a few more tries, then the rollout's attempt has failed. */
const broken: ReadonlySet<string> = new Set(["internal", "bad_answer", "future_failed"]);
const maxBrokenTries = 6;

export class WaitingSampler implements Sampler {
  readonly #options: WaitingSamplerOptions;

  constructor(options: WaitingSamplerOptions) {
    this.#options = options;
  }

  /** @throws BoundaryError("model-server") once the model was away too long or refused the request. */
  async sample(request: SampleRequest, signal: AbortSignal): Promise<SampleResult> {
    const startedAt = this.#options.now();
    let brokenTries = 0;
    for (let tries = 0; ; tries++) {
      this.#options.beforeTry();
      const outcome = await this.#try(request, signal);
      if (!(outcome instanceof BoundaryError)) return outcome;
      brokenTries = broken.has(outcome.code) ? brokenTries + 1 : 0;
      if (brokenTries >= maxBrokenTries) throw outcome;
      const awayMs = this.#options.now() - startedAt;
      if (awayMs >= this.#options.maxAwayMs) throw gaveUp(awayMs, outcome);
      const pauseMs = Math.min(this.#options.pauseMs * 2 ** Math.min(tries, 4), 5_000);
      const waitMs = Math.max(outcome.retryAfterMs ?? 0, pauseMs);
      // A time that the server forbids beyond the limit is known to be too long now already.
      if (awayMs + waitMs >= this.#options.maxAwayMs && waitMs > pauseMs) throw outcome;
      this.#options.onLost?.(waitMs);
      this.#options.onWait?.({ untilMs: this.#wallNow() + waitMs, reason: outcome.message, awayMs });
      await sleep(waitMs, signal);
    }
  }

  #wallNow(): number {
    return this.#options.wallNow?.() ?? Date.now();
  }

  /** The sample, or the failure that waiting may cure: the model is away, or the database that says where it is. */
  async #try(request: SampleRequest, signal: AbortSignal): Promise<SampleResult | BoundaryError> {
    const { now, onLost, onWait, samplerFor } = this.#options;
    const startedAt = now();
    let told = 0;
    const onHeldUp = (wait: Wait) => {
      // Whoever waits for a server that is away must not hold up a pause: it may be away for an hour.
      this.#options.beforeTry();
      const ms = Math.max(0, wait.untilMs - this.#wallNow());
      told += ms;
      onLost?.(ms);
      onWait?.(wait);
    };
    try {
      signal.throwIfAborted();
      const serving = (await this.#watch())?.serving ?? null;
      if (serving === null) return noVersion();
      const result = await samplerFor(serving, onHeldUp).sample(request, signal);
      return { ...result, policyVersion: serving.version };
    } catch (error) {
      signal.throwIfAborted();
      onLost?.(Math.max(0, now() - startedAt - told));
      if (error instanceof BoundaryError && curable(error)) return error;
      throw error;
    }
  }

  async #watch(): Promise<WatchedRun | null> {
    try {
      return await this.#options.watch(this.#options.runId);
    } catch (cause) {
      throw new BoundaryError("infrastructure", "database", "the run's serving version could not be read", { cause });
    }
  }
}

/** Waiting can't cure a request that the server refused as such. */
const curable = (error: BoundaryError): boolean =>
  error.boundary === "model-server" ? error.retryable || gone.has(error.code) : error.code === "database";

const noVersion = (): BoundaryError =>
  new BoundaryError("model-server", "no_version", "no policy version serves yet", { retryable: true });

const gaveUp = (awayMs: number, cause: BoundaryError): BoundaryError =>
  new BoundaryError("model-server", "away", `the model was away for ${Math.round(awayMs / 1000)} s: ${cause.message}`, {
    cause,
  });
