/**
 * What this process knows of the runs it works for: status and the version that serves, at most `maxAgeMs` old. One
 * statement refreshes all of them, so 512 rollouts that ask cost no more than one.
 */

import { type RunStatus, runStatuses } from "@rolldeck/contracts/lifecycle";
import type { Pool } from "@rolldeck/db/connect";
import { z } from "zod";

export interface Serving {
  readonly version: number;
  readonly samplingSessionId: string;
  readonly bootId: string;
}
export interface WatchedRun {
  readonly runId: string;
  readonly status: RunStatus;
  /** Null while no version serves. */
  readonly serving: Serving | null;
}

const Row = z.object({
  id: z.string(),
  status: z.enum(runStatuses),
  serving_version: z.int().nullable(),
  sampling_session_id: z.string().nullable(),
  model_boot_id: z.string().nullable(),
});

/** Runs by id; ids without a row are left out. One statement. */
export async function readWatchedRuns(pool: Pool, runIds: readonly string[]): Promise<WatchedRun[]> {
  const { rows } = await pool.query(
    `select id, status, serving_version, sampling_session_id, model_boot_id from runs where id = any($1)`,
    [runIds],
  );
  return z
    .array(Row)
    .parse(rows)
    .map((row) => ({ runId: row.id, status: row.status, serving: servingOf(row) }));
}

function servingOf(row: z.infer<typeof Row>): Serving | null {
  if (row.serving_version === null || row.sampling_session_id === null || row.model_boot_id === null) return null;
  return { version: row.serving_version, samplingSessionId: row.sampling_session_id, bootId: row.model_boot_id };
}

export interface RunWatchOptions {
  read(runIds: readonly string[]): Promise<readonly WatchedRun[]>;
  /** Runs to keep fresh without being asked: those in which this process holds claims. */
  watched(): readonly string[];
  /** Called after every refresh; must not throw. */
  onRefresh(runs: readonly WatchedRun[]): void;
  readonly maxAgeMs: number;
  now(): number;
  onError(error: unknown): void;
}

export class RunWatch {
  readonly #options: RunWatchOptions;
  readonly #known = new Map<string, { readonly run: WatchedRun | null; readonly readAt: number }>();
  readonly #wanted = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #round: Promise<void> | null = null;

  constructor(options: RunWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      // Nothing was asked and nothing is held: no statement.
      this.#refreshAll().catch((error: unknown) => this.#options.onError(error));
    }, this.#options.maxAgeMs);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** The run, at most `maxAgeMs` old; null when it has no row. @throws what the read threw when nothing fresh is known. */
  async get(runId: string): Promise<WatchedRun | null> {
    const oldest = this.#options.now() - this.#options.maxAgeMs;
    for (;;) {
      const known = this.#known.get(runId);
      if (known && known.readAt >= oldest) return known.run;
      this.#wanted.add(runId);
      // A round that was under way may have left without this run; then a second one takes it along.
      await this.#refreshAll();
    }
  }

  /** This watch's clock, for `learn`. */
  now(): number {
    return this.#options.now();
  }

  /**
   * What another read found, as of a moment before it was sent. A claim reads the version that serves with it: a rollout that
   * begins right after an update must not sample the version before, which the cache may still hold.
   */
  learn(runId: string, serving: Serving | null, asOf: number): void {
    const known = this.#known.get(runId);
    if (known !== undefined && known.readAt >= asOf) return;
    this.#known.set(runId, { run: { runId, status: known?.run?.status ?? "running", serving }, readAt: asOf });
  }

  #refreshAll(): Promise<void> {
    this.#round ??= this.#refresh().finally(() => {
      this.#round = null;
    });
    return this.#round;
  }

  async #refresh(): Promise<void> {
    const runIds = [...new Set([...this.#wanted, ...this.#options.watched()])];
    for (const known of this.#known.keys()) if (!runIds.includes(known)) this.#known.delete(known);
    if (runIds.length === 0) return;
    const readAt = this.#options.now();
    const runs = await this.#options.read(runIds);
    const byId = new Map(runs.map((run) => [run.runId, run]));
    for (const runId of runIds) {
      this.#wanted.delete(runId);
      // What was learnt while this read was under way is newer.
      if ((this.#known.get(runId)?.readAt ?? readAt) > readAt) continue;
      this.#known.set(runId, { run: byId.get(runId) ?? null, readAt });
    }
    this.#options.onRefresh(runs);
  }
}
