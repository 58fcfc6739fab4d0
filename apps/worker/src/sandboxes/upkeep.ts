/**
 * Keeps rows and sandboxes in step: renews those in use, closes those that nothing can come of any more, marks those that are gone,
 * and ends what no live row names; also says which will be wanted next. Runs in one worker process at a time; every part of it may
 * run twice.
 */
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import type { SandboxRuntimeName } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { sandboxEnded } from "@rolldeck/db/hot/sandboxes";
import { type LiveSandbox, liveSandboxes } from "@rolldeck/db/reads/live-sandboxes";
import type { SandboxForecast } from "./forecast.ts";
import { sandboxLeaseMs } from "./sandbox-spec.ts";

export interface UpkeepOptions {
  readonly pool: Pool;
  readonly runtime: (name: SandboxRuntimeName) => SandboxRuntime;
  /** Runtimes that this process has used. */
  readonly used: () => readonly SandboxRuntime[];
  readonly forecast: Pick<SandboxForecast, "tell">;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly onTrouble: (message: string, error: unknown) => void;
  /** An idle environment of the run gave its place back. */
  readonly onRoom: (runId: string) => void;
}

const renewEveryMs = 30_000;
/** A sandbox without a row may be one whose row was closed this moment; a row without a sandbox may be about to open. */
const graceMs = 60_000;
const callMs = 60_000;
/** Closings at once. */
const breadth = 8;

export class SandboxUpkeep {
  readonly #options: UpkeepOptions;
  readonly #stopping = new AbortController();
  #renewedAt = Number.NEGATIVE_INFINITY;
  #closing: Promise<void> | null = null;
  #looking: Promise<void> | null = null;
  #telling: Promise<void> | null = null;
  /** By runtime: one that does not answer holds up its own sandboxes alone. */
  readonly #renewing = new Map<string, Promise<void>>();

  constructor(options: UpkeepOptions) {
    this.#options = options;
  }

  /**
   * Starts what is not under way: closing many takes longer than a sweep may, and longer than a lease. Neither closing nor a runtime
   * that does not answer keeps sandboxes in use from being renewed.
   */
  begin(): void {
    const said = (error: unknown) => this.#options.onTrouble("upkeep of sandboxes failed", error);
    this.#closing ??= this.#closeDue()
      .catch(said)
      .finally(() => {
        this.#closing = null;
      });
    this.#looking ??= this.#renewInUse()
      .catch(said)
      .finally(() => {
        this.#looking = null;
      });
    this.#telling ??= this.#options.forecast
      .tell(this.#stopping.signal)
      .catch(said)
      .finally(() => {
        this.#telling = null;
      });
  }

  /** What is under way is given up: another process goes on with it. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the worker is stopping"));
    await this.#looking;
    await Promise.all([this.#closing, this.#telling, ...this.#renewing.values()]);
  }

  async #closeDue(): Promise<void> {
    const live = await liveSandboxes(this.#options.pool);
    const due = live.filter((row) => row.due !== null);
    await this.#inLanes(due, (row) => this.#close(row));
  }

  async #renewInUse(): Promise<void> {
    const { pool, now, onTrouble } = this.#options;
    if (now() - this.#renewedAt < renewEveryMs) return;
    const live = await liveSandboxes(pool);
    this.#renewedAt = now();
    const inUse = live.filter(({ due }) => due === null);
    for (const runtime of this.#runtimes(live)) {
      const { name } = runtime;
      if (this.#renewing.has(name)) continue;
      const own = inUse.filter((row) => row.runtime === name);
      const renewal = this.#renew(runtime, own)
        .catch((error: unknown) => onTrouble(`${name} sandboxes were not looked after`, error))
        .finally(() => this.#renewing.delete(name));
      this.#renewing.set(name, renewal);
    }
  }

  #limit(): AbortSignal {
    return AbortSignal.any([AbortSignal.timeout(callMs), this.#stopping.signal]);
  }

  #runtimes(live: readonly LiveSandbox[]): readonly SandboxRuntime[] {
    const { runtime, used, onTrouble } = this.#options;
    const runtimes = new Set(used());
    for (const name of new Set(live.map((row) => row.runtime))) {
      try {
        runtimes.add(runtime(name));
      } catch (error) {
        onTrouble(`${name} sandboxes are open and can't be looked after`, error);
      }
    }
    return [...runtimes];
  }

  async #inLanes<T>(items: readonly T[], work: (item: T) => Promise<void>, isOver = () => false): Promise<void> {
    const waiting = [...items];
    const next = () => (this.#stopping.signal.aborted || isOver() ? undefined : waiting.shift());
    const lane = async () => {
      for (let item = next(); item !== undefined; item = next()) await work(item);
    };
    await Promise.all(Array.from({ length: breadth }, lane));
  }

  async #close({ id, runId, runtime, state, due, keep, idle }: LiveSandbox): Promise<void> {
    const { pool, onTrouble, onRoom } = this.#options;
    try {
      if (keep) {
        await sandboxEnded(pool, id, { state: "kept", reason: due });
        return;
      }
      // Its row first: somebody may ask for more time, or take the environment, this very moment. What then can't be closed ends with its lease.
      const last = { state: "closed", reason: due, unlessKept: true, ifIdle: idle } as const;
      if ((state === "kept" || idle) && !(await sandboxEnded(pool, id, last))) return;
      if (idle) onRoom(runId);
      await this.#options.runtime(runtime).close(id, this.#limit());
      await sandboxEnded(pool, id, { state: "closed", reason: due });
    } catch (error) {
      onTrouble(`sandbox ${id} was not closed`, error);
    }
  }

  async #renew(runtime: SandboxRuntime, rows: readonly LiveSandbox[]): Promise<void> {
    const { pool } = this.#options;
    const ids = rows.map(({ id }) => id);
    const found = await runtime.renew(ids, sandboxLeaseMs, this.#limit());
    const missing = rows.filter(
      ({ id, ageS, state }) => !found.has(id) && state !== "opening" && ageS * 1_000 >= graceMs,
    );
    // Asked again: what became due meanwhile was closed, not lost.
    const inUse = missing.length === 0 ? [] : (await liveSandboxes(pool)).filter(({ due }) => due === null);
    for (const { id, state, rolloutId } of inUse) {
      // An environment that passed on is not there while it is reset.
      if (state === "opening" || !missing.some((row) => row.id === id && row.rolloutId === rolloutId)) continue;
      await sandboxEnded(pool, id, { state: "lost", reason: "its runtime no longer has it" });
    }
    await this.#endStrangers(runtime);
  }

  /** Rows are read after the list: a sandbox that is in it has had its row before. */
  async #endStrangers(runtime: SandboxRuntime): Promise<void> {
    const { pool, now: monotonic, onTrouble } = this.#options;
    const there = await runtime.list(this.#limit());
    const named = new Set((await liveSandboxes(pool)).map(({ id }) => id));
    const now = Date.now();
    const strangers = there.filter(({ id, createdAtMs }) => !named.has(id) && now - createdAtMs > graceMs);
    // One that can't be closed keeps none of the others; those that are left are the next round's, or nothing would be renewed.
    const until = monotonic() + renewEveryMs;
    await this.#inLanes(
      strangers,
      ({ id }) =>
        runtime
          .close(id, this.#limit())
          .catch((error: unknown) => onTrouble(`stray sandbox ${id} was not closed`, error)),
      () => monotonic() > until,
    );
  }
}
