import type { BackendInfo } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { gpuWorkerName, reportGpuWorker } from "@rolldeck/db/gpu-workers";
import type { WorkerContext } from "./worker-context.ts";

/** A model server has answered: whoever sees it first says so, and runs whose models went with an earlier boot are woken. */
export async function reportModelServer(
  context: WorkerContext,
  backend: RunConfig["backend"],
  { device, bootId }: BackendInfo,
): Promise<void> {
  const url = context.backends.urlOf(backend);
  await reportGpuWorker(context.pool, {
    name: gpuWorkerName(backend),
    url,
    state: "ready",
    boot: null,
    device,
    bootId,
  });
}
