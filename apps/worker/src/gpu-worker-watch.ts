/**
 * Looks at the model servers that live runs need and writes what it finds: a new boot id means that the models in its memory are
 * gone; of a server that someone else runs and that does not answer, why, since when and how often it was asked. The row of the
 * supervised server keeps what the supervisor wrote while it is being installed; what the fleet makes of its workers is in its own rows.
 */
import { BackendConfig } from "@rolldeck/contracts/backend-config";
import {
  dropEndedFleetRows,
  type GpuWorkerBoot,
  gpuWorkerName,
  type ModelOf,
  readGpuWorker,
  reportGpuWorker,
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
type Run = ModelOf<BackendConfig>;
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
    await dropEndedFleetRows(this.#context.pool);
    const inUse = await this.#modelsInUse();
    // An absence that no run waits for is not counted on.
    const names = new Set(inUse.map(gpuWorkerName));
    for (const name of this.#misses.keys()) if (!names.has(name)) this.#misses.delete(name);
    await Promise.all(inUse.map((run) => this.#reportOne(run)));
  }

  /** The supervised server always, others while a live run names them. */
  async #modelsInUse(): Promise<Run[]> {
    const { rows } = await this.#context.pool.query(
      `select distinct on (backend, case when jsonb_typeof(backend -> 'fleet') = 'object' then id end) id, backend
       from runs cross join lateral (select config -> 'backend' as backend) b
       where status not in ('stopped', 'completed', 'failed')`,
    );
    const named = z.array(z.object({ id: z.string(), backend: BackendConfig })).parse(rows);
    const all = [{ id: "", backend: BackendConfig.parse({}) }, ...named].map(
      ({ id, backend }): Run => ({ runId: id, config: { backend } }),
    );
    return [...new Map(all.map((run) => [gpuWorkerName(run), run])).values()].filter((run) =>
      this.#context.backends.knows(run),
    );
  }

  async #reportOne(run: Run): Promise<void> {
    const { backends } = this.#context;
    try {
      const info = await backends.of(run).info(AbortSignal.timeout(infoTimeoutMs));
      this.#misses.delete(gpuWorkerName(run));
      await reportModelServer(this.#context, run, info);
    } catch (error) {
      await this.#reportAway(run, error);
      return;
    }
    await this.#loads.report(run);
  }

  async #reportAway(run: Run, error: unknown): Promise<void> {
    const { pool, backends, log } = this.#context;
    const name = gpuWorkerName(run);
    const before = await readGpuWorker(pool, name);
    const missed = this.#missed(name, before);
    const { server, endpoint } = run.config.backend;
    const isOurs = server === null && endpoint === null;
    const boot = isOurs ? null : awayBoot(error, missed);
    if (before?.state === "ready") {
      if (missed.tries < missesBeforeLost) return;
      log.warn({ gpuWorker: name, err: error }, "the model server does not answer");
      await reportGpuWorker(pool, { ...before, state: "lost", boot, bootId: null });
    } else if (!isOurs) {
      const known = { device: before?.device ?? null, state: before?.state ?? ("absent" as const) };
      await reportGpuWorker(pool, { ...known, name, url: backends.urlOf(run), boot, bootId: null });
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
