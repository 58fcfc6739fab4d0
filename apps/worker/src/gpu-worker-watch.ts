/**
 * Looks at the model servers that live runs need and writes what it finds: a new boot id means that the models in its memory are
 * gone; of a server that someone else runs and that does not answer, why, since when and how often it was asked. The row of the
 * supervised server keeps what the supervisor wrote while it is being installed.
 */
import { BackendConfig, type RunConfig } from "@rolldeck/contracts/run-config";
import {
  type GpuWorkerBoot,
  gpuWorkerName,
  readGpuWorker,
  reportGpuWorker,
  supervisedGpuWorker,
  triesUnit,
} from "@rolldeck/db/gpu-workers";
import { z } from "zod";
import { EngineLoads } from "./engine-loads.ts";
import { reportModelServer } from "./report-model-server.ts";
import { whyAway } from "./why-away.ts";
import type { WorkerContext } from "./worker-context.ts";

const infoTimeoutMs = 3_000;
/** Looks that must fail in a row before a server that answered counts as lost: one slow answer is no outage. */
const missesBeforeLost = 2;
/** Another process that looked until a moment ago has counted already; an older row is of an absence that nobody watched. */
const goneOnMs = 30_000;

interface Misses {
  readonly tries: number;
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
}
type Known = Awaited<ReturnType<typeof readGpuWorker>>;

export class GpuWorkerWatch {
  readonly #context: WorkerContext;
  readonly #misses = new Map<string, Misses>();
  readonly #loads: EngineLoads;

  constructor(context: WorkerContext) {
    this.#context = context;
    this.#loads = new EngineLoads(context);
  }

  /** One look at each. */
  async report(): Promise<void> {
    const inUse = await this.#backendsInUse();
    // An absence that no run waits for is not counted on.
    const names = new Set(inUse.map(gpuWorkerName));
    for (const name of this.#misses.keys()) if (!names.has(name)) this.#misses.delete(name);
    await Promise.all(inUse.map((backend) => this.#reportOne(backend)));
  }

  /** The supervised server always, others while a live run names them. */
  async #backendsInUse(): Promise<RunConfig["backend"][]> {
    const { rows } = await this.#context.pool.query(
      `select distinct config->'backend' as backend from runs where status not in ('stopped', 'completed', 'failed')`,
    );
    const named = z.array(z.object({ backend: BackendConfig })).parse(rows);
    const all = [BackendConfig.parse({}), ...named.map(({ backend }) => backend)];
    return [...new Map(all.map((backend) => [gpuWorkerName(backend), backend])).values()].filter((backend) =>
      this.#context.backends.knows(backend),
    );
  }

  async #reportOne(backend: RunConfig["backend"]): Promise<void> {
    const { backends } = this.#context;
    try {
      const info = await backends.of(backend).info(AbortSignal.timeout(infoTimeoutMs));
      this.#misses.delete(gpuWorkerName(backend));
      await reportModelServer(this.#context, backend, info);
    } catch (error) {
      await this.#reportAway(backend, error);
      return;
    }
    await this.#loads.report(backend);
  }

  async #reportAway(backend: RunConfig["backend"], error: unknown): Promise<void> {
    const { pool, backends, log } = this.#context;
    const name = gpuWorkerName(backend);
    const before = await readGpuWorker(pool, name);
    const missed = this.#missed(name, before);
    const isSupervised = name === supervisedGpuWorker;
    const boot = isSupervised ? null : awayBoot(error, missed);
    if (before?.state === "ready") {
      if (missed.tries < missesBeforeLost) return;
      log.warn({ gpuWorker: name, err: error }, "the model server does not answer");
      await reportGpuWorker(pool, { ...before, state: "lost", boot, bootId: null });
    } else if (!isSupervised) {
      const known = { device: before?.device ?? null, state: before?.state ?? ("absent" as const) };
      await reportGpuWorker(pool, { ...known, name, url: backends.urlOf(backend), boot, bootId: null });
    }
  }

  #missed(name: string, before: Known): Misses {
    const last = this.#misses.get(name) ?? elsewhereCounted(before);
    const missed = { tries: (last?.tries ?? 0) + 1, sinceMs: last?.sinceMs ?? performance.now() };
    this.#misses.set(name, missed);
    return missed;
  }
}

/** What another process counted before this one took over. */
function elsewhereCounted(before: Known): Misses | null {
  if (before?.boot?.unit !== triesUnit || before.ageMs > goneOnMs) return null;
  const { done, elapsedMs } = before.boot;
  return { tries: done ?? 0, sinceMs: performance.now() - (elapsedMs ?? 0) - before.ageMs };
}

const awayBoot = (error: unknown, { tries, sinceMs }: Misses): GpuWorkerBoot => ({
  message: whyAway(error),
  done: tries,
  total: null,
  unit: triesUnit,
  elapsedMs: performance.now() - sinceMs,
});
