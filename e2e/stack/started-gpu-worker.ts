/** The real GPU worker alone, on a free port with its own data folder. */
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
}

/** Resolves once it answers. @param options.flags further command-line flags, `--instant-engine` for one */
export async function startGpuWorker(options: {
  readonly flags?: readonly string[];
  readonly progress?: (line: string) => void;
}): Promise<StartedGpuWorker> {
  const root = path.resolve(import.meta.dirname, "../..");
  const python = await preparePython({
    root,
    withTests: false,
    torch: "cpu",
    env: process.env,
    onProgress: ({ step }) => options.progress?.(step),
    signal: new AbortController().signal,
  });
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-gpu-worker-"));
  const port = await freePort();
  const apiKey = "tml-end-to-end-test";
  const cwd = path.join(root, "infra/gpu-worker");
  const fixed = ["--port", String(port), "--data-dir", folder, "--model-roots", path.join(root, "infra/models")];
  const child = spawn(python, ["-m", "rolldeck_gpu_worker", ...fixed, ...(options.flags ?? [])], {
    cwd,
    env: { ...process.env, PYTHONPATH: cwd, OMP_WAIT_POLICY: "PASSIVE", ROLLDECK_GPU_WORKER_KEY: apiKey },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const url = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exit = once(child, "exit");
      child.kill("SIGTERM");
      await exit;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await untilAnswering(url, () => child.exitCode === null);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, apiKey, pid: child.pid ?? 0, stop };
}

async function untilAnswering(url: string, alive: () => boolean): Promise<void> {
  const endsAt = Date.now() + 60_000;
  while (Date.now() < endsAt && alive()) {
    const answer = await fetch(`${url}/api/v1/healthz`).catch(() => null);
    if (answer !== null) return;
    await sleep(200);
  }
  throw new Error(alive() ? "the GPU worker did not answer within 60 s" : "the GPU worker ended at once");
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
