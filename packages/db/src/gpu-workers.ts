import type pg from "pg";

export type GpuWorkerState = "installing" | "starting" | "ready" | "lost" | "absent" | "failed";
export interface GpuWorkerBoot {
  readonly message: string;
  readonly done: number | null;
  readonly total: number | null;
  readonly unit: string | null;
  readonly elapsedMs: number | null;
}
export interface GpuWorkerReport {
  /** `supervisedGpuWorker`, or the address of a backend that someone else runs. */
  readonly name: string;
  readonly url: string | null;
  readonly state: GpuWorkerState;
  readonly boot: GpuWorkerBoot | null;
  readonly device: string | null;
  readonly bootId: string | null;
}
/** Name of the worker that `npm start` supervises. */
export const supervisedGpuWorker = "gpu-worker";
/** Row of gpu_workers that a run's backend lives on. */
export const gpuWorkerName = (backend: { readonly endpoint: string | null }): string =>
  backend.endpoint ?? supervisedGpuWorker;

/** Writes what is known of a GPU worker now; wakes live runs when its state or boot id changed. */
export function reportGpuWorker(_pool: pg.Pool, _report: GpuWorkerReport): Promise<{ changed: boolean }> {
  return Promise.reject(new Error("under construction"));
}
export function readGpuWorker(
  _pool: pg.Pool,
  _name: string,
): Promise<(GpuWorkerReport & { readonly lastSeenAtMs: number | null }) | null> {
  return Promise.reject(new Error("under construction"));
}
