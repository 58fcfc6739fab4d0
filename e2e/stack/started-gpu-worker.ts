/** The real GPU worker alone, on a free port, with its own data folder where it is given none. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { preparePython } from "../../apps/cli/src/start/python-environment.ts";

export interface StartedGpuWorker {
  readonly url: string;
  readonly apiKey: string;
  readonly pid: number;
  stop(): Promise<void>;
  /** SIGKILL; its data folder stays. */
  kill(): Promise<void>;
  /** Null while it runs. */
  exitCode(): number | null;
}

/** Looked at once: that takes seconds, in which nothing else of this process runs. */
let interpreter: Promise<string> | null = null;

/** Resolves once it answers. @param options.flags further command-line flags, `--instant-engine` for one */
export async function startGpuWorker(options: {
  readonly flags?: readonly string[];
  readonly progress?: (line: string) => void;
  readonly apiKey?: string;
  /** Stays when it ends. */
  readonly dataFolder?: string;
  /** Resolves once its process is there, which takes its time to answer. */
  readonly atOnce?: true;
}): Promise<StartedGpuWorker> {
  const root = path.resolve(import.meta.dirname, "../..");
  interpreter ??= preparePython({
    root,
    withTests: false,
    torch: "cpu",
    env: process.env,
    onProgress: ({ step }) => options.progress?.(step),
    signal: new AbortController().signal,
  });
  const python = await interpreter;
  const folder = options.dataFolder ?? mkdtempSync(path.join(tmpdir(), "rolldeck-gpu-worker-"));
  const port = await freePort();
  const apiKey = options.apiKey ?? "tml-end-to-end-test";
  const cwd = path.join(root, "infra/gpu-worker");
  const fixed = ["--port", String(port), "--data-dir", folder, "--model-roots", path.join(root, "infra/models")];
  const child = spawn(python, ["-m", "rolldeck_gpu_worker", ...fixed, ...(options.flags ?? [])], {
    cwd,
    env: { ...process.env, PYTHONPATH: cwd, OMP_WAIT_POLICY: "PASSIVE", ROLLDECK_GPU_WORKER_KEY: apiKey },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const url = `http://127.0.0.1:${port}`;
  const exitCode = (): number | null => child.exitCode ?? (child.signalCode === null ? null : 137);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (exitCode() !== null) return;
    const exit = once(child, "exit");
    child.kill(signal);
    await exit;
  };
  const stop = async (): Promise<void> => {
    await end("SIGTERM");
    if (options.dataFolder === undefined) rmSync(folder, { recursive: true, force: true });
  };
  try {
    if (!options.atOnce) await untilAnswering(url, () => child.exitCode === null);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, apiKey, pid: child.pid ?? 0, stop, kill: () => end("SIGKILL"), exitCode };
}

async function untilAnswering(url: string, alive: () => boolean): Promise<void> {
  const endsAt = Date.now() + 180_000;
  while (Date.now() < endsAt && alive()) {
    const answer = await fetch(`${url}/api/v1/healthz`).catch(() => null);
    if (answer !== null) return;
    await sleep(200);
  }
  throw new Error(alive() ? "the GPU worker did not answer within 180 s" : "the GPU worker ended at once");
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() =>
        typeof address === "object" && address ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}
