/**
 * What the engines bear that live runs sample from, kept in their servers' rows. A reading is the second of two in a row: what waits
 * in only one of them came in a moment ago, and is no queue. Wakes nobody: plans read it as they come.
 */
import type { BackendConfig } from "@rolldeck/contracts/backend-config";
import type { EngineReading } from "@rolldeck/contracts/ports/backend";
import { gpuWorkerName, type ModelOf, reportEngineLoad } from "@rolldeck/db/gpu-workers";
import type { WorkerContext } from "./worker-context.ts";

const readTimeoutMs = 2_000;
/** An older reading is not the one before. */
const inARowMs = 10_000;

export class EngineLoads {
  readonly #context: WorkerContext;
  readonly #last = new Map<string, { readonly reading: EngineReading; readonly at: number }>();

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  /** Reads the engine of a server whose row says that it is ready. Never fails: without a reading, limits stay as they are. */
  async report(run: ModelOf<BackendConfig>): Promise<void> {
    const { pool, backends, log } = this.#context;
    const name = gpuWorkerName(run);
    // Before it is asked, so that a limit set meanwhile is not taken for one that the reading has felt.
    const at = this.#context.databaseNow();
    try {
      const reading = (await backends.of(run).load?.(AbortSignal.timeout(readTimeoutMs))) ?? null;
      const last = this.#last.get(name);
      if (reading === null) this.#last.delete(name);
      else this.#last.set(name, { reading, at });
      if (reading === null || last === undefined || at - last.at > inARowMs) return;
      const waiting = Math.min(reading.waiting, last.reading.waiting);
      await reportEngineLoad(pool, name, { ...reading, waiting, at });
    } catch (error) {
      this.#last.delete(name);
      log.debug({ gpuWorker: name, err: error }, "the engine's load was not read");
    }
  }
}
