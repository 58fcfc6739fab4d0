/**
 * The supervised GPU worker: environment first, then the process. Its progress is a row, so the first run's page shows it as
 * boot phase. Invariant: a failure here never takes the rest of the stack down; it is reported with what to do.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { reportGpuWorker, supervisedGpuWorker } from "@rolldeck/db/gpu-workers";
import type { Pool } from "pg";
import { Child } from "./child.ts";
import { say } from "./console-lines.ts";
import { type InstallProgress, preparePython } from "./python-environment.ts";

export interface GpuWorkerOptions {
  readonly root: string;
  readonly dataFolder: string;
  readonly logFolder: string;
  readonly modelRoots: string;
  readonly port: number;
  readonly key: string;
  readonly torch: "cpu" | "cuda" | undefined;
  readonly pool: Pool;
  readonly signal: AbortSignal;
}

export const gpuWorkerUrl = (port: number): string => `http://127.0.0.1:${port}`;

/** Writes the newest progress at most twice a second; the last one always arrives. */
function progressReporter(pool: Pool, url: string) {
  const startedAt = Date.now();
  let lastAt = 0;
  return async (
    state: "installing" | "starting" | "failed",
    progress: InstallProgress,
    force = false,
  ): Promise<void> => {
    if (!force && Date.now() - lastAt < 500) return;
    lastAt = Date.now();
    const size =
      progress.doneMb === null
        ? { done: null, total: null, unit: null }
        : { done: progress.doneMb, total: progress.totalMb, unit: "MB" };
    await reportGpuWorker(pool, {
      name: supervisedGpuWorker,
      url,
      state,
      boot: { message: progress.step, ...size, elapsedMs: Date.now() - startedAt },
      device: null,
      bootId: null,
    }).catch((error: Error) => say("gpu-worker", `progress not stored: ${error.message}`));
  };
}

/** Prepares the environment and starts the process; resolves with the Child once it runs, null when it could not be prepared. */
export async function startGpuWorker(options: GpuWorkerOptions): Promise<Child | null> {
  const url = gpuWorkerUrl(options.port);
  const report = progressReporter(options.pool, url);
  let step = "";
  const onProgress = (progress: InstallProgress): void => {
    if (progress.step !== step) {
      step = progress.step;
      if (/^(making|downloading|unpacking|the CPU)/.test(step)) say("gpu-worker", step);
    }
    void report("installing", progress);
  };
  try {
    const fresh = !existsSync(path.join(options.root, "infra/gpu-worker/.venv/.rolldeck-requirements"));
    if (fresh && !process.env.ROLLDECK_PYTHON) announceDownload(options.torch);
    await report("installing", { step: "looking for Python", doneMb: null, totalMb: null }, true);
    const python = await preparePython({
      root: options.root,
      withTests: false,
      torch: options.torch,
      env: process.env,
      onProgress,
      signal: options.signal,
    });
    await report("starting", { step: "starting the model server", doneMb: null, totalMb: null }, true);
    const child = launch(python, options);
    child.start();
    return child;
  } catch (error) {
    if (options.signal.aborted) return null;
    const message = error instanceof Error ? error.message : String(error);
    await report("failed", { step: message.slice(0, 480), doneMb: null, totalMb: null }, true);
    say("gpu-worker", message);
    return null;
  }
}

function announceDownload(torch: "cpu" | "cuda" | undefined): void {
  say(
    "gpu-worker",
    torch === "cpu"
      ? "fetching PyTorch for CPU (about 200 MB) and its companions into infra/gpu-worker/.venv"
      : "fetching PyTorch by pip's settings into infra/gpu-worker/.venv; that may be a CUDA build of about 4 GB (--torch cpu fetches about 200 MB)",
  );
}

function launch(python: string, options: GpuWorkerOptions): Child {
  const folder = path.join(options.root, "infra/gpu-worker");
  return new Child({
    name: "gpu-worker",
    command: python,
    args: [
      "-m",
      "rolldeck_gpu_worker",
      "--host",
      "127.0.0.1",
      "--port",
      String(options.port),
      "--data-dir",
      path.join(options.dataFolder, "gpu-worker"),
      "--model-roots",
      options.modelRoots,
    ],
    cwd: folder,
    env: {
      ...stringEnv(process.env),
      PYTHONPATH: folder,
      PYTHONUNBUFFERED: "1",
      OMP_WAIT_POLICY: "PASSIVE",
      HF_HUB_OFFLINE: "1",
      ROLLDECK_GPU_WORKER_KEY: options.key,
    },
    channel: false,
    logFolder: options.logFolder,
    stopping: options.signal,
    onRestart: (code, signal) =>
      say("gpu-worker", `ended (${signal ?? `exit ${code}`}); starting it again, see logs/gpu-worker.log`),
  });
}

/** The environment without unset entries. */
export const stringEnv = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
