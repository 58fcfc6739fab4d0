/**
 * A backend of which one server updates and others sample. What the trainer serves it stores; each sample names the stored weights, and
 * the replica that gets it loads them first. Invariants: a turn is drawn from the weights that it names, whatever its replica served
 * before; a rollout's turns go to one replica while that answers; a replica that is lost costs the turns under way a second try.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { EngineReading, StepBackend } from "@rolldeck/contracts/ports/backend";
import type { SampleRequest, SampleResult } from "@rolldeck/contracts/ports/sampler";
import { chooseReplica, type Route } from "./choose-replica.ts";

export interface Replica {
  /** Stays the same when it is started again. */
  readonly name: string;
  readonly backend: StepBackend;
}
export interface SplitOptions {
  /** Stores for samplers. */
  readonly trainer: StepBackend;
  /** Those that run now, by whoever keeps them running. */
  replicas(): Promise<readonly Replica[]>;
  /** Monotonic milliseconds. */
  now(): number;
}

/** One that did not answer is left alone for so long, unless all others are too. */
const restMs = 2_000;
/** Rollouts remembered at most; the ones that asked longest ago are forgotten, and may then move. */
const maxRoutes = 20_000;

export function splitBackend({ trainer, replicas, now }: SplitOptions): StepBackend {
  const router = new ReplicaRouter(now);
  return {
    recovery: trainer.recovery,
    info: (signal) => trainer.info(signal),
    load: async (signal) => loadOf(await replicas(), signal),
    createModel: (options) => trainer.createModel(options),
    adoptModel: (options) => trainer.adoptModel(options),
    ...(trainer.score ? { score: trainer.score } : {}),
    sampler: (options) => ({
      sample: async (request, signal) =>
        router.sample(await replicas(), request.affinityKey, (replica) =>
          replica.backend.sampler(options).sample(request, signal),
        ),
    }),
    close: () => trainer.close(),
  };
}

class ReplicaRouter {
  readonly #now: () => number;
  readonly #routes = new Map<string, Route>();
  /** When each is asked again that did not answer. */
  readonly #restUntil = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** @throws BoundaryError("model-server") when none of them answers, or what the one said that did */
  async sample(
    replicas: readonly Replica[],
    key: SampleRequest["affinityKey"],
    ask: (replica: Replica) => Promise<SampleResult>,
  ): Promise<SampleResult> {
    const failed = new Set<string>();
    for (let last: unknown = noReplica(); ; ) {
      const replica = this.#choose(replicas, key, failed);
      if (replica === null) throw last;
      try {
        return await ask(replica);
      } catch (error) {
        if (!isAway(error)) throw error;
        last = error;
        failed.add(replica.name);
        this.#restUntil.set(replica.name, this.#now() + restMs);
      }
    }
  }

  #choose(replicas: readonly Replica[], key: string, failed: ReadonlySet<string>): Replica | null {
    const now = this.#now();
    const left = replicas.filter(({ name }) => !failed.has(name));
    const rested = left.filter(({ name }) => (this.#restUntil.get(name) ?? 0) <= now);
    const from = (rested.length > 0 ? rested : left).map(({ name }) => name);
    const name = chooseReplica(this.#routes, { key, replicas: from, now });
    if (name === null) return null;
    this.#routes.delete(key);
    this.#routes.set(key, { replica: name, usedAt: now });
    for (const oldest of this.#routes.keys()) {
      if (this.#routes.size <= maxRoutes) break;
      this.#routes.delete(oldest);
    }
    return left.find((replica) => replica.name === name) ?? null;
  }
}

/** It is gone, or can't read what the trainer stored: another one may. */
const away: ReadonlySet<string> = new Set(["unreachable", "no_worker", "unknown_model"]);
const isAway = (error: unknown): boolean => error instanceof BoundaryError && away.has(error.code);

const noReplica = (): BoundaryError =>
  new BoundaryError("model-server", "no_worker", "none of the run's samplers is there now", { retryable: true });

/** Of all together; one that does not tell is left out. */
async function loadOf(replicas: readonly Replica[], signal: AbortSignal | undefined): Promise<EngineReading | null> {
  const readings = await Promise.all(replicas.map(({ backend }) => backend.load?.(signal).catch(() => null) ?? null));
  const known = readings.filter((reading) => reading !== null);
  if (known.length === 0) return null;
  return {
    running: known.reduce((sum, { running }) => sum + running, 0),
    waiting: known.reduce((sum, { waiting }) => sum + waiting, 0),
    cacheUse: Math.max(...known.map(({ cacheUse }) => cacheUse)),
  };
}
