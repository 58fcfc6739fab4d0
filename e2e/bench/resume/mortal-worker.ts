/** A GPU worker that is killed in the midst of its work: by itself where only it knows the moment, else from outside. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { workerFolder } from "../ask-python.ts";

/** `between`: after forward_backward was answered and before optim_step is sent. */
export const killPoints = [
  "sampling",
  "forward_backward",
  "between",
  "optim_step",
  "checkpoint write",
  "sampler save",
] as const;
export type KillPoint = (typeof killPoints)[number];

export interface MortalWorker {
  readonly server: { readonly url: string; readonly apiKey: string };
  /** From the next request on that gets to this point it dies there; `between` is the caller's, by `kill`. */
  arm(point: KillPoint): void;
  /** As kill −9 does. */
  kill(): void;
  /** Resolves with the clock (milliseconds) at its end. */
  readonly died: Promise<number>;
  stop(): Promise<void>;
}

const Ready = z.object({ url: z.string() });
const apiKey = "tml-bench-resume-only";

/** @param folder its data folder, which outlives it @param model a policy's folder, served as `policy` */
export async function startMortalWorker(python: string, folder: string, model: string): Promise<MortalWorker> {
  const armed = path.join(folder, "die-at");
  rmSync(armed, { force: true });
  const args = ["--data-dir", folder, "--model-roots", path.join(folder, "none"), "--model", `policy=${model}`];
  const child = spawn(python, [path.join(import.meta.dirname, "mortal_worker.py"), ...args], {
    env: {
      ...process.env,
      PYTHONPATH: workerFolder,
      PYTHONDONTWRITEBYTECODE: "1",
      OMP_WAIT_POLICY: "PASSIVE",
      ROLLDECK_GPU_WORKER_KEY: apiKey,
      MORTAL_FILE: armed,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const died = once(child, "exit").then(() => performance.now());
  const line = await Promise.race([once(createInterface({ input: child.stdout }), "line"), died]);
  if (!Array.isArray(line)) throw new Error("the GPU worker ended at once");
  return {
    server: { url: Ready.parse(JSON.parse(String(line[0]))).url, apiKey },
    arm: (point) => writeFileSync(armed, point),
    kill: () => child.kill("SIGKILL"),
    died,
    stop: async () => {
      child.kill("SIGTERM");
      await died;
    },
  };
}
