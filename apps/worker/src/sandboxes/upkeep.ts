/**
 * Keeps rows and sandboxes in step: renews those in use, closes those that nothing can come of any more, marks those that are gone,
 * and ends what no live row names. Runs in one worker process at a time; every part of it may run twice.
 */
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import type { SandboxRuntimeName } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { sandboxEnded } from "@rolldeck/db/hot/sandboxes";
import { type LiveSandbox, liveSandboxes } from "@rolldeck/db/reads/live-sandboxes";
import { sandboxLeaseMs } from "./sandbox-spec.ts";

export interface UpkeepOptions {
  readonly pool: Pool;
  readonly runtime: (name: SandboxRuntimeName) => SandboxRuntime;
  /** Runtimes that this process has used. */
  readonly used: () => readonly SandboxRuntime[];
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly onTrouble: (message: string, error: unknown) => void;
}

const renewEveryMs = 30_000;
/** A sandbox without a row may be one whose row was closed this moment; a row without a sandbox may be about to open. */
const graceMs = 60_000;
const callMs = 60_000;
/** Closings at once. */
const breadth = 8;

export class SandboxUpkeep {
  readonly #options: UpkeepOptions;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;

  constructor(options: UpkeepOptions) {
    this.#options = options;
  }

  /** Starts a round unless one is under way: closing many takes longer than a sweep may. */
  begin(): void {
    this.#running ??= this.round()
      .catch((error: unknown) => this.#options.onTrouble("upkeep of sandboxes failed", error))
      .finally(() => {
        this.#running = null;
      });
  }

  async stop(): Promise<void> {
    await this.#running;
  }

  async round(): Promise<void> {
    const { pool, now } = this.#options;
    const live = await liveSandboxes(pool);
    await this.#closeAll(live.filter(({ due }) => due !== null));
    if (now() - this.#renewedAt < renewEveryMs) return;
    this.#renewedAt = now();
    const inUse = live.filter(({ due }) => due === null);
    for (const runtime of this.#runtimes(live)) {
      const own = inUse.filter((row) => row.runtime === runtime.name);
      await this.#renew(runtime, own).catch((error: unknown) =>
        this.#options.onTrouble(`${runtime.name} sandboxes were not looked after`, error),
      );
    }
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

  async #closeAll(due: readonly LiveSandbox[]): Promise<void> {
    const waiting = [...due];
    const lane = async () => {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) await this.#close(row);
    };
    await Promise.all(Array.from({ length: breadth }, lane));
  }

  async #close({ id, runtime, due, keep }: LiveSandbox): Promise<void> {
    const { pool, onTrouble } = this.#options;
    try {
      if (keep) {
        await sandboxEnded(pool, id, { state: "kept", reason: due });
        return;
      }
      await this.#options.runtime(runtime).close(id, AbortSignal.timeout(callMs));
      await sandboxEnded(pool, id, { state: "closed", reason: due });
    } catch (error) {
      onTrouble(`sandbox ${id} was not closed`, error);
    }
  }

  async #renew(runtime: SandboxRuntime, rows: readonly LiveSandbox[]): Promise<void> {
    const { pool } = this.#options;
    const ids = rows.map(({ id }) => id);
    const found = await runtime.renew(ids, sandboxLeaseMs, AbortSignal.timeout(callMs));
    for (const { id, ageS, state } of rows) {
      if (found.has(id) || state === "opening" || ageS * 1_000 < graceMs) continue;
      await sandboxEnded(pool, id, { state: "lost", reason: "its runtime no longer has it" });
    }
    await this.#endStrangers(runtime);
  }

  /** Rows are read after the list: a sandbox that is in it has had its row before. */
  async #endStrangers(runtime: SandboxRuntime): Promise<void> {
    const { pool } = this.#options;
    const there = await runtime.list(AbortSignal.timeout(callMs));
    const named = new Set((await liveSandboxes(pool)).map(({ id }) => id));
    const now = Date.now();
    const strangers = there.filter(({ id, createdAtMs }) => !named.has(id) && now - createdAtMs > graceMs);
    for (const { id } of strangers) await runtime.close(id, AbortSignal.timeout(callMs));
  }
}
