/** Waits until the run's model server answers, and tells the run's page what it waits for. */
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import type { BackendInfo } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { type GpuWorkerReport, gpuWorkerName, readGpuWorker } from "@rolldeck/db/gpu-workers";
import { reportModelServer } from "../report-model-server.ts";
import { sleep } from "../wait-for.ts";
import type { WorkerContext } from "../worker-context.ts";
import type { BootProgress } from "./boot-progress.ts";

const lookMs = 500;
const infoTimeoutMs = 3_000;

/** What no waiting cures: the operator's list or the config has to change. */
const final: ReadonlySet<string> = new Set(["unauthorised", "unknown_server", "unknown_backend", "wrong_kind"]);

/**
 * @throws the signal's reason, or InputError when a server that someone else runs will not have us or is not listed; waits without
 * end otherwise: an install may take as long as its download.
 */
export async function waitForModelServer(
  context: WorkerContext,
  backend: RunConfig["backend"],
  boot: BootProgress,
  signal: AbortSignal,
): Promise<BackendInfo> {
  const elsewhere = backend.server ?? backend.endpoint;
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
      if (elsewhere !== null && error instanceof BoundaryError && final.has(error.code)) {
        throw new InputError([
          { path: backend.server === null ? "backend.endpoint" : "backend.server", message: error.message },
        ]);
      }
      context.log.debug({ err: error }, "the model server does not answer yet");
    }
    if (elsewhere !== null) await boot.report("model-server", `waiting for an answer of ${elsewhere}`);
    else await relay(await readGpuWorker(context.pool, gpuWorkerName(backend)), boot);
    await sleep(lookMs, signal);
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
