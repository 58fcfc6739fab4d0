import type { BackendConfig } from "@rolldeck/contracts/backend-config";
import type { BackendInfo } from "@rolldeck/contracts/ports/backend";
import { gpuWorkerName, type ModelOf, reportGpuWorker } from "@rolldeck/db/gpu-workers";
import type { WorkerContext } from "./worker-context.ts";

/** A model server has answered: whoever sees it first says so, and runs whose models went with an earlier boot are woken. */
export async function reportModelServer(
  context: WorkerContext,
  run: ModelOf<BackendConfig>,
  { device, bootId }: BackendInfo,
): Promise<void> {
  const url = context.backends.urlOf(run);
  await reportGpuWorker(context.pool, { name: gpuWorkerName(run), url, state: "ready", boot: null, device, bootId });
}
