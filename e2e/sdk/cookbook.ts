/** The official client and its cookbook, run unchanged in their own Python environment against our GPU worker. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { prepareEnvironment } from "../fidelity/environment.ts";
import { fidelityFolder } from "../fidelity/packages.ts";
import { runCommand } from "../runner/run-command.ts";
import { type StartedGpuWorker, startGpuWorker } from "../stack/started-gpu-worker.ts";

const minute = 60_000;

export interface Cookbook {
  /** Files of the test go here; the model is in its folder `model`. */
  readonly folder: string;
  readonly modelFolder: string;
  readonly worker: StartedGpuWorker;
  /** @returns what it wrote @throws Error when it did not end with status 0 */
  run(args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

/** Makes a model folder and starts a worker that serves it under the folder's path, from which clients read its tokenizer. */
export async function startCookbook(): Promise<Cookbook> {
  const python = await prepareEnvironment("cookbook", (line) => process.stdout.write(`${line}\n`));
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-sdk-"));
  const modelFolder = path.join(folder, "model");
  const run = async (args: readonly string[], apiKey = ""): Promise<string> => {
    const env = {
      TINKER_API_KEY: apiKey,
      HF_HUB_OFFLINE: "1",
      OMP_NUM_THREADS: "1",
      PYTHONDONTWRITEBYTECODE: "1",
      // Nothing is read from, or left in, the user's own folders.
      HOME: folder,
    };
    const end = await runCommand(python, args, { cwd: folder, env, limitMs: 3 * minute, keepOutput: true });
    if (end.code !== 0) throw new Error(`${args.join(" ")}: exit ${end.code}\n${end.output.slice(-4000)}`);
    return end.output;
  };
  try {
    await run([path.join(fidelityFolder, "cookbook/make_model.py"), modelFolder]);
    const worker = await startGpuWorker({ flags: ["--model", `${modelFolder}=${modelFolder}`] });
    const stop = async (): Promise<void> => {
      await worker.stop();
      rmSync(folder, { recursive: true, force: true });
    };
    return { folder, modelFolder, worker, run: (args) => run(args, worker.apiKey), stop };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}
