/**
 * Backends of runs that have GPU workers of their own on the fleet. A worker is found by its row with every request, so one that was
 * started again, on this host or another, is spoken to where it is now; that it has lost the model shows by its boot id.
 */
import type { MovingAddress } from "@rolldeck/backends/http/moving-server";
import { type Replica, splitBackend } from "@rolldeck/backends/split/split-backend";
import type { FleetDemand, RunWorker } from "@rolldeck/contracts/fleet";
import type { StepBackend } from "@rolldeck/contracts/ports/backend";
import type { RunServers } from "@rolldeck/fleet/run-servers";

export interface WorkerServer {
  readonly url: MovingAddress;
  readonly apiKey: string;
  /** Others sample what it serves. */
  readonly storesForSamplers: boolean;
}
export interface FleetBackendOptions {
  readonly servers: RunServers;
  connect(server: WorkerServer): StepBackend;
  /** Monotonic milliseconds. */
  now(): number;
}

/** A run that nobody asked for in so long is over, or another process works for it. */
const idleLimitMs = 2 * 3_600_000;

export class FleetBackends {
  readonly #options: FleetBackendOptions;
  readonly #open = new Map<string, { readonly backend: StepBackend; usedAt: number }>();

  constructor(options: FleetBackendOptions) {
    this.#options = options;
  }

  of(runId: string, { layout }: FleetDemand): StepBackend {
    const usedAt = this.#options.now();
    const known = this.#open.get(runId);
    if (known !== undefined) {
      known.usedAt = usedAt;
      return known.backend;
    }
    this.#closeIdle(usedAt);
    const backend = layout === "split" ? this.#split(runId) : this.#updating(runId, false);
    this.#open.set(runId, { backend, usedAt });
    return backend;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ backend }) => backend.close()));
    this.#open.clear();
  }

  /** The worker that updates; of a colocated run it samples too. */
  #updating(runId: string, storesForSamplers: boolean): StepBackend {
    const find = (workers: readonly RunWorker[]) => workers.find(({ role }) => role !== "sampler");
    return this.#connect(runId, "the run's GPU worker", find, storesForSamplers);
  }

  #split(runId: string): StepBackend {
    const { servers, now } = this.#options;
    const opened = new Map<string, Replica>();
    const replicaOf = ({ id, replica }: RunWorker): Replica => {
      const known = opened.get(id);
      if (known !== undefined) return known;
      const find = (workers: readonly RunWorker[]) => workers.find((worker) => worker.id === id);
      const made = { name: id, backend: this.#connect(runId, `sampler ${replica + 1} of the run`, find, false) };
      opened.set(id, made);
      return made;
    };
    const split = splitBackend({
      trainer: this.#updating(runId, true),
      replicas: async () => (await servers.workersOf(runId)).filter(samples).map(replicaOf),
      now,
    });
    const close = async (): Promise<void> => {
      await Promise.all([split.close(), ...[...opened.values()].map(({ backend }) => backend.close())]);
    };
    return { ...split, close };
  }

  #connect(
    runId: string,
    name: string,
    find: (workers: readonly RunWorker[]) => RunWorker | undefined,
    storesForSamplers: boolean,
  ): StepBackend {
    const { servers, connect } = this.#options;
    return connect({ ...servers.serverOf(runId, name, find), storesForSamplers });
  }

  #closeIdle(now: number): void {
    for (const [runId, { backend, usedAt }] of this.#open) {
      if (now - usedAt < idleLimitMs) continue;
      this.#open.delete(runId);
      void backend.close();
    }
  }
}

/** It has answered its supervisor. */
const samples = ({ role, state, url }: RunWorker): boolean => role === "sampler" && state === "ready" && url !== null;
