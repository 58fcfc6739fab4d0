/** Waits until the run's model server answers, and tells the run's page what it waits for. */
import { awayLimitMinutes } from "@rolldeck/contracts/away-limit";
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import type { BackendInfo } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { type GpuWorkerReport, gpuWorkerName, readGpuWorker } from "@rolldeck/db/gpu-workers";
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
const final: ReadonlySet<string> = new Set(["unauthorised", "unknown_server", "unknown_backend", "wrong_kind"]);

export interface ServerWait {
  readonly backend: RunConfig["backend"];
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
  const { backend, boot, signal } = wait;
  const isOurs = backend.server === null && backend.endpoint === null;
  const absence = new Absence(context, wait);
  for (;;) {
    signal.throwIfAborted();
    try {
      const info = await context.backends
        .of(backend)
        .info(AbortSignal.any([signal, AbortSignal.timeout(infoTimeoutMs)]));
      await reportModelServer(context, backend, info);
      return info;
    } catch (error) {
      signal.throwIfAborted();
      context.log.debug({ err: error }, "the model server does not answer yet");
      if (isOurs) await relay(await readGpuWorker(context.pool, gpuWorkerName(backend)), boot);
      else await absence.tell(error);
    }
    await sleep(isOurs ? lookMs : absence.pauseMs, signal);
  }
}

/** Of a server that someone else runs. */
class Absence {
  readonly #wait: ServerWait;
  readonly #address: string;
  readonly #startedAt = performance.now();
  readonly #since = new Date().toISOString().slice(11, 19);
  #tries = 0;
  #said: { readonly why: string; readonly atMs: number } | null = null;

  constructor({ backends }: Pick<WorkerContext, "backends">, wait: ServerWait) {
    this.#wait = wait;
    this.#address = backends.urlOf(wait.backend) ?? wait.backend.server ?? "the model server";
  }

  get pauseMs(): number {
    return Math.min(lookMs * 2 ** Math.min(this.#tries, 10), maxLookMs);
  }

  /** @throws InputError when waiting can't help, or was long enough */
  async tell(error: unknown): Promise<void> {
    const { backend, boot, served } = this.#wait;
    this.#tries++;
    if (error instanceof BoundaryError && final.has(error.code)) throw this.#refusal(error.message);
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
    const path = this.#wait.backend.server === null ? "backend.endpoint" : "backend.server";
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
