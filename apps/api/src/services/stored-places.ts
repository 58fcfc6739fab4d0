/**
 * Where the files of runs are, and the worker through which each is read: this server's own, or one of the run on the fleet, found by its
 * row and spoken to with the run's key. Invariant: nobody is kept waiting for a worker that is not there; that is an answer, with what
 * would help.
 */
import type { StoredCheckpoints } from "@rolldeck/backends/gpu-worker/stored-checkpoints";
import type { FleetReading } from "@rolldeck/contracts/api/checkpoints";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { readRunFiles, useReader } from "@rolldeck/db/fleet/readers";
import { isSupervised } from "@rolldeck/db/gpu-workers";
import type { RunServer, RunServers } from "@rolldeck/fleet/run-servers";
import type { Pool } from "pg";
import { ProblemError } from "../problems.ts";
import { findReading, fleetReading } from "./fleet-reading.ts";

export type Stored = Pick<StoredCheckpoints, "export" | "verify">;
type Closable<T> = T & { close(): Promise<void> };

export interface StoredPlacesOptions<T> {
  readonly pool: Pool;
  /** Null: this server knows no GPU worker of its own. */
  readonly own: T | null;
  /** Null: this server has not the secret of the fleet's workers. */
  readonly servers: RunServers | null;
  connect(server: RunServer): Closable<T>;
}
export interface Place<T> {
  readonly stored: T;
  /** To be called now and then while it is read from: it stays. */
  readonly use: () => void;
}

/** Connections to workers of so many runs are kept. */
const mostKept = 32;
/** A use is written down so often. */
const useEveryMs = 20_000;

export class StoredPlaces<T extends object> {
  readonly #options: StoredPlacesOptions<T>;
  readonly #open = new Map<string, Closable<T>>();
  readonly #usedAt = new Map<string, number>();

  constructor(options: StoredPlacesOptions<T>) {
    this.#options = options;
  }

  /** Why the files of such a run can't ever be read here; null = they can, if perhaps not now. */
  refusal({ backend }: Pick<RunConfig, "backend">): string | null {
    if (backend.fleet !== null)
      return this.#options.servers === null
        ? "This server has not the secret of the fleet's workers: set ROLLDECK_FLEET_SECRET, as npm start does."
        : null;
    if (!isSupervised(backend)) return "Its checkpoints lie on a server that someone else runs: ask that one for them.";
    if (this.#options.own !== null) return null;
    return "This server knows no GPU worker: set ROLLDECK_GPU_WORKER_URL and ROLLDECK_GPU_WORKER_KEY.";
  }

  /** Of a run on the fleet, who reads its files; null for other runs, and where they can't be read here. */
  async reading(runId: string, config: Pick<RunConfig, "backend">): Promise<FleetReading | null> {
    if (config.backend.fleet === null || this.refusal(config) !== null) return null;
    const files = await readRunFiles(this.#options.pool, runId);
    return files && fleetReading(files);
  }

  /** @throws ProblemError `fleet-worker-needed` where no worker of the run is there; `conflict` where `refusal` says why */
  async of(runId: string, config: Pick<RunConfig, "backend">): Promise<Place<T>> {
    const { pool, own, servers } = this.#options;
    const refusal = this.refusal(config);
    if (refusal !== null) throw new ProblemError("conflict", refusal);
    if (config.backend.fleet === null && own !== null) return { stored: own, use: () => undefined };
    const files = await readRunFiles(pool, runId);
    if (files === null || servers === null) throw new ProblemError("not-found", `there is no run ${runId}`);
    const reading = fleetReading(files);
    if (reading.state !== "ready") throw new ProblemError("fleet-worker-needed", neededWords(runId, reading));
    const { ownerId } = files;
    const use = () => this.#use(ownerId);
    use();
    return { stored: this.#at(ownerId, servers), use };
  }

  async close(): Promise<void> {
    const all = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(all.map((one) => one.close()));
  }

  #at(ownerId: string, servers: RunServers): T {
    const known = this.#open.get(ownerId);
    this.#open.delete(ownerId);
    const opened = known ?? this.#options.connect(servers.serverOf(ownerId, "the run's GPU worker", findReading));
    this.#open.set(ownerId, opened);
    for (const [oldest, left] of this.#open) {
      if (this.#open.size <= mostKept) break;
      this.#open.delete(oldest);
      void left.close();
    }
    return opened;
  }

  /** Nobody waits for it: a use that is not written down is written by the next. */
  #use(ownerId: string): void {
    const now = performance.now();
    if (now - (this.#usedAt.get(ownerId) ?? Number.NEGATIVE_INFINITY) < useEveryMs) return;
    this.#usedAt.delete(ownerId);
    this.#usedAt.set(ownerId, now);
    for (const oldest of this.#usedAt.keys()) {
      if (this.#usedAt.size <= mostKept) break;
      this.#usedAt.delete(oldest);
    }
    useReader(this.#options.pool, ownerId).catch(() => this.#usedAt.delete(ownerId));
  }
}

/** What whoever asks over the API, the page or the command line can do about it. */
export function neededWords(runId: string, { state, message, remedy, wakeRefusal }: FleetReading): string {
  const help = remedy === null ? "" : ` ${remedy}.`;
  if (state === "coming") return `${message}${help} Ask again when it answers.`;
  const wake =
    wakeRefusal === null
      ? `Ask for it: POST /api/v1/runs/${runId}/reader, or rolldeck checkpoint wake ${runId}.`
      : wakeRefusal;
  return `${message}${help} ${wake}`;
}
