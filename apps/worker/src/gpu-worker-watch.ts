/**
 * Looks at the model servers that live runs need and writes what it finds: a new boot id means that the models in its memory are
 * gone. The row of a server that is still being installed keeps what the supervisor wrote.
 */
import { BackendConfig, type RunConfig } from "@rolldeck/contracts/run-config";
import { gpuWorkerName, readGpuWorker, reportGpuWorker } from "@rolldeck/db/gpu-workers";
import { z } from "zod";
import { reportModelServer } from "./report-model-server.ts";
import type { WorkerContext } from "./worker-context.ts";

const infoTimeoutMs = 3_000;
/** Looks that must fail in a row before a server that answered counts as lost: one slow answer is no outage. */
const missesBeforeLost = 2;

export class GpuWorkerWatch {
  readonly #context: WorkerContext;
  readonly #misses = new Map<string, number>();

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  /** One look at each. */
  async report(): Promise<void> {
    await Promise.all((await this.#backendsInUse()).map((backend) => this.#reportOne(backend)));
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
    const { pool, backends, log } = this.#context;
    const name = gpuWorkerName(backend);
    try {
      const info = await backends.of(backend).info(AbortSignal.timeout(infoTimeoutMs));
      this.#misses.delete(name);
      await reportModelServer(this.#context, backend, info);
    } catch (error) {
      const misses = (this.#misses.get(name) ?? 0) + 1;
      this.#misses.set(name, misses);
      const before = await readGpuWorker(pool, name);
      if (before?.state !== "ready" || misses < missesBeforeLost) return;
      log.warn({ gpuWorker: name, err: error }, "the model server does not answer");
      await reportGpuWorker(pool, { ...before, state: "lost", boot: null, bootId: null });
    }
  }
}
