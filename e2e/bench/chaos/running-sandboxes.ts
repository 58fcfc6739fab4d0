/** Sandboxes of one deployment that still run on this machine, asked of the runtime itself and not of rows. */
import { ProcessRuntime } from "@rolldeck/sandbox/process/process-runtime";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";

export interface SandboxPlace {
  /** Data folder of the workers. */
  readonly folder: string;
  readonly deployment: string;
  readonly stateFolder: string;
}

export async function runningSandboxes({ folder, deployment, stateFolder }: SandboxPlace): Promise<number> {
  const settings = parseSandboxSettings({}, folder);
  const runtime = new ProcessRuntime({ settings, deployment, stateFolder, onTrouble: () => undefined });
  try {
    return (await runtime.list()).filter(({ state }) => state === "running").length;
  } finally {
    await runtime.disconnect();
  }
}
