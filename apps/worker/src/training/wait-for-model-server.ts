/** Waits until the run's model server answers, and tells the run's page what it waits for. */
import { awayLimitMinutes } from "@rolldeck/contracts/away-limit";
import type { BackendConfig } from "@rolldeck/contracts/backend-config";
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import type { BackendInfo } from "@rolldeck/contracts/ports/backend";
import { type GpuWorkerReport, gpuWorkerName, type ModelOf, readGpuWorker } from "@rolldeck/db/gpu-workers";
import { canSample, tellOfWorkers } from "../fleet/ask-for-workers.ts";
import { reportModelServer } from "../report-model-server.ts";
import { sleep } from "../wait-for.ts";
import { whyAway } from "../why-away.ts";
import type { WorkerContext } from "../worker-context.ts";
import type { BootProgress } from "./boot-progress.ts";

const lookMs = 500;
/** Between two looks at a server that someone else runs and that has been away for a while. */
const maxLookMs = 3_000;
const infoTimeoutMs = 3_000;
/** An absence is one sentence of the log in this time, or another one when its cause changes. */
const sayEveryMs = 15_000;

/** What no waiting cures: the operator's list or the config has to change. */
const final: ReadonlySet<string> = new Set([
  "unauthorised",
  "unknown_server",
  "unknown_backend",
  "wrong_kind",
  "no_fleet",
]);

export interface ServerWait {
  readonly run: ModelOf<BackendConfig>;
  readonly boot: BootProgress;
  /** Whether a version of the run's model has served. */
  readonly served: boolean;
  readonly signal: AbortSignal;
}

/**
 * @throws the signal's reason, or InputError when a server that someone else runs will not have us, is not listed, or has not answered
 * for as long as the config lets it; waits without end for our own: an install may take as long as its download.
 */
export async function waitForModelServer(context: WorkerContext, wait: ServerWait): Promise<BackendInfo> {
  const { signal } = wait;
  const absence = absenceOf(context, wait);
  for (;;) {
    const info = await look(context, wait).catch(async (error: unknown) => {
      signal.throwIfAborted();
      context.log.debug({ err: error }, "the model server does not answer yet");
      await absence.tell(error);
      return null;
    });
    if (info !== null) {
      if (await absence.isOver()) return info;
      await absence.tell(null);
    }
    await sleep(absence.pauseMs, signal);
  }
}

async function look(context: WorkerContext, { run, signal }: ServerWait): Promise<BackendInfo> {
  signal.throwIfAborted();
  const info = await context.backends.of(run).info(AbortSignal.any([signal, AbortSignal.timeout(infoTimeoutMs)]));
  await reportModelServer(context, run, info);
  return info;
}

interface Absence {
  /** @throws InputError when waiting can't help, or was long enough */
  tell(error: unknown): Promise<void>;
  /** Asked once the server has answered. */
  isOver(): Promise<boolean>;
  readonly pauseMs: number;
}
const over = async (): Promise<boolean> => true;

function absenceOf(context: WorkerContext, wait: ServerWait): Absence {
  const { run, boot, served } = wait;
  const { fleet, server, endpoint } = run.config.backend;
  const { pool } = context;
  if (fleet !== null)
    return {
      pauseMs: lookMs,
      isOver: () => canSample(pool, run.runId, fleet),
      tell: (error) => {
        if (isFinal(error)) throw new InputError([{ path: "backend.fleet", message: error.message }]);
        return tellOfWorkers(pool, { runId: run.runId, boot, served });
      },
    };
  if (server !== null || endpoint !== null) return new ForeignAbsence(context, wait);
  return {
    pauseMs: lookMs,
    isOver: over,
    tell: async () => relay(await readGpuWorker(pool, gpuWorkerName(run)), boot),
  };
}

const isFinal = (error: unknown): error is BoundaryError => error instanceof BoundaryError && final.has(error.code);

/** Of a server that someone else runs. */
class ForeignAbsence implements Absence {
  readonly #wait: ServerWait;
  readonly #address: string;
  readonly #startedAt = performance.now();
  readonly #since = new Date().toISOString().slice(11, 19);
  #tries = 0;
  #said: { readonly why: string; readonly atMs: number } | null = null;

  constructor({ backends }: Pick<WorkerContext, "backends">, wait: ServerWait) {
    this.#wait = wait;
    this.#address = backends.urlOf(wait.run) ?? wait.run.config.backend.server ?? "the model server";
  }

  readonly isOver = over;

  get pauseMs(): number {
    return Math.min(lookMs * 2 ** Math.min(this.#tries, 10), maxLookMs);
  }

  async tell(error: unknown): Promise<void> {
    const { run, boot, served } = this.#wait;
    const { backend } = run.config;
    this.#tries++;
    if (isFinal(error)) throw this.#refusal(error.message);
    const why = whyAway(error);
    const minutes = awayLimitMinutes(backend, served);
    const now = performance.now();
    if (now - this.#startedAt >= minutes * 60_000) {
      const tries = this.#tries === 1 ? "one try" : `${this.#tries} tries`;
      throw this.#refusal(`${this.#address} has not answered for ${minutes} min (${tries}): ${why}`);
    }
    if (this.#said?.why === why && now - this.#said.atMs < sayEveryMs) return;
    this.#said = { why, atMs: now };
    const words = `waiting for ${this.#address}: ${why}, since ${this.#since} UTC, try ${this.#tries}`;
    await boot.report("model-server", words);
  }

  #refusal(message: string): InputError {
    const path = this.#wait.run.config.backend.server === null ? "backend.endpoint" : "backend.server";
    return new InputError([{ path, message }]);
  }
}

/** The supervisor's own words while it installs and starts the server. */
async function relay(server: GpuWorkerReport | null, boot: BootProgress): Promise<void> {
  if (server === null || server.state === "absent") {
    await boot.report("waiting-for-worker", "no model server has reported yet");
    return;
  }
  const said = server.boot;
  const progress = said?.done == null ? null : { done: said.done, total: said.total, unit: said.unit ?? "" };
  if (server.state === "installing") await boot.report("environment", said?.message ?? "installing", progress);
  else if (server.state === "failed") await boot.report("environment", said?.message ?? "the install failed", progress);
  else if (server.state === "starting") await boot.report("model-server", said?.message ?? "starting", progress);
  else await boot.report("model-server", "the model server does not answer; waiting for its restart");
}
