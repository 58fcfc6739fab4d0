/** An outside trainer in a process of its own, in the environment of its packages, with its bridge beside them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";

const bridgesFolder = path.resolve(import.meta.dirname, "../../../infra/bridges");

/** What a bridge's test loop says of a step. */
const TrainedStep = z.object({
  step: z.int(),
  /** Ids in the order of the trainer's batch. */
  rollouts: z.array(z.string()),
  rewards: z.array(z.number()),
  loss: z.number(),
  gradNorm: z.number(),
  gap: z.number(),
  trained: z.int(),
  /** What the trainer would log, where its loop makes any. */
  metrics: z.record(z.string(), z.number()).optional(),
});
export type TrainedStep = z.infer<typeof TrainedStep>;

export interface TrainerProcess {
  /** So far. */
  readonly steps: readonly TrainedStep[];
  /** Its own output, for messages. */
  said(): string;
  kill(): Promise<void>;
  /** @returns the exit status */
  readonly ended: Promise<number | null>;
}

export const bridgeFolder = (bridge: string): string => path.join(bridgesFolder, bridge);

/** What a bridge's code is imported with, nothing of it installed. @param scratch folder for what packages keep */
export const bridgeEnv = (bridge: string, scratch: string): Record<string, string> => ({
  PYTHONPATH: [bridge, "driven", "driven/testing"].map(bridgeFolder).join(path.delimiter),
  PYTHONDONTWRITEBYTECODE: "1",
  HF_HUB_OFFLINE: "1",
  HF_HOME: path.join(scratch, "hf"),
  OMP_NUM_THREADS: "1",
});

/** @param settings a JSON file as the bridge's `train_loop.py` reads it */
export function startTrainerProcess(
  { bridge, python }: { readonly bridge: string; readonly python: string },
  settings: string,
  env: Readonly<Record<string, string>>,
): TrainerProcess {
  const folder = bridgeFolder(bridge);
  const child = spawn(python, [path.join(folder, "testing/train_loop.py"), settings], {
    cwd: folder,
    env: { ...process.env, ...bridgeEnv(bridge, path.dirname(settings)), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const steps: TrainedStep[] = [];
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on("line", (line) => {
      lines.push(line);
      if (line.startsWith("STEP ")) steps.push(TrainedStep.parse(JSON.parse(line.slice(5))));
    });
  const ended = once(child, "close").then(([code]): number | null => (typeof code === "number" ? code : null));
  return {
    steps,
    ended,
    said: () => lines.slice(-25).join("\n"),
    kill: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await ended;
    },
  };
}
