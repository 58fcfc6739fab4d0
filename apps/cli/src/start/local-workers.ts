/** What GPU workers as processes of this machine are started with: the Python of the one beside `npm start`, found when it is needed. */
import path from "node:path";
import type { LocalWorkers } from "@rolldeck/fleet/process/process-launcher";
import { say } from "./console-lines.ts";
import { preparePython } from "./python-environment.ts";

export interface LocalWorkersOptions {
  readonly root: string;
  readonly dataFolder: string;
  readonly modelRoots: string;
  readonly torch: "cpu" | "cuda" | undefined;
  readonly signal: AbortSignal;
}

export function localWorkers({ root, dataFolder, modelRoots, torch, signal }: LocalWorkersOptions): LocalWorkers {
  let found: Promise<string> | null = null;
  const find = (): Promise<string> => {
    say("fleet", "looking for a Python for workers on this machine");
    return preparePython({ root, withTests: false, torch, env: process.env, onProgress: () => undefined, signal });
  };
  return {
    python: () => {
      // One that failed is tried again by the next who asks: something may have been installed.
      found ??= find().catch((error: unknown) => {
        found = null;
        throw error;
      });
      return found;
    },
    source: path.join(root, "infra/gpu-worker"),
    folder: path.join(dataFolder, "fleet"),
    modelRoots,
  };
}
