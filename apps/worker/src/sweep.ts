/**
 * Every two seconds, in one worker process at a time: finds runs that nobody brought on (a killed reconcile, an expired lease,
 * a due timer) and reconciles them in process, never through the queue, so that no lost or stuck job can freeze a run. It
 * also looks at the model servers, whose boot id tells whether their models still live, after the sandboxes, and at launched trainers.
 */
import { sweepMs } from "@rolldeck/contracts/jobs";
import { runsBehind } from "@rolldeck/db/runs/wake";
import { withSweepLock } from "@rolldeck/db/sweep-lock";
import { dropDeadWorkers, heartbeat } from "@rolldeck/db/workers";
import { GpuWorkerWatch } from "./gpu-worker-watch.ts";
import { reconcile } from "./jobs/reconcile.ts";
import { ModelUpkeep } from "./model-upkeep.ts";
import type { WorkerContext } from "./worker-context.ts";

/** Reconciles of one sweep that run at once. */
const breadth = 4;
/** Ticks between two looks at the models themselves. */
const upkeepEvery = 3;

export class Sweep {
  readonly #context: WorkerContext;
  readonly #modelServers: GpuWorkerWatch;
  readonly #models: ModelUpkeep;
  #timer: NodeJS.Timeout | null = null;
  #tick: Promise<void> | null = null;
  #stopped = false;
  #ticks = 0;

  constructor(context: WorkerContext) {
    this.#context = context;
    this.#modelServers = new GpuWorkerWatch(context);
    this.#models = new ModelUpkeep(context);
  }

  start(): void {
    this.#schedule(0);
  }

  /** No new tick; resolves when the present one is over. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#tick;
    await this.#models.settled();
  }

  /** This process's own sign of life, then the sweep if no other process is at it. */
  async tick(): Promise<void> {
    const { pool, workerId, leases } = this.#context;
    await heartbeat(pool, workerId, leases.size);
    await withSweepLock(pool, async () => {
      this.#context.sandboxUpkeep.begin();
      this.#context.trainerJobs.begin();
      await Promise.all([this.#modelServers.report(), dropDeadWorkers(pool)]);
      await reconcileAll(this.#context, await runsBehind(pool));
      if (this.#ticks++ % upkeepEvery === 0) await this.#models.look();
    });
  }

  #schedule(inMs: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      const startedAt = performance.now();
      this.#tick = this.tick()
        .catch((error: unknown) => this.#context.log.warn({ err: error }, "sweep failed"))
        .finally(() => this.#schedule(Math.max(sweepMs - (performance.now() - startedAt), 0)));
    }, inMs);
  }
}

/** One run's failure does not keep the others waiting. */
async function reconcileAll(context: WorkerContext, runIds: readonly string[]): Promise<void> {
  const waiting = [...runIds];
  const lane = async () => {
    for (let runId = waiting.shift(); runId !== undefined; runId = waiting.shift()) {
      await reconcile(context, runId, "sweep").catch((error: unknown) =>
        context.log.error({ runId, err: error }, "reconcile failed"),
      );
    }
  };
  await Promise.all(Array.from({ length: breadth }, lane));
}
