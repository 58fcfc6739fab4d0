/**
 * `npm run bench -- resume`: a GPU worker is killed in six moments of a run, and the run goes on from its newest checkpoint.
 * → {"kills":[{"killedAt","replayedSteps","maxWeightDiff","resumeS"}]}
 *
 * replayedSteps: updates that had been answered and were applied again. maxWeightDiff: largest difference of any weight at the run's
 * end from a model that saw the same rollouts undisturbed. resumeS: from the worker's end until its successor stands where it was.
 * Flags: --quick (fewer rollouts and steps), --kills <list> (all six), --models <list> (quickstart; also 5m), --seed <n> (6).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { exportModel, largestDifference, readTensors } from "../real/exported-model.ts";
import { testPython } from "./ask-python.ts";
import { makePolicies, type Policy } from "./policies.ts";
import { type KillPoint, killPoints, type MortalWorker, startMortalWorker } from "./resume/mortal-worker.ts";
import { type RunShape, StoredRun } from "./resume/stored-run.ts";

interface Scene {
  readonly python: string;
  readonly folder: string;
  readonly policy: Policy;
  readonly shape: RunShape;
  readonly steps: number;
}
interface Kill {
  readonly killedAt: KillPoint;
  readonly replayedSteps: number;
  readonly maxWeightDiff: number;
  readonly resumeS: number;
}

/** A checkpoint is due at its end, and an update lies between it and the one before. */
const killStep = 4;
const checkpointEvery = 2;
/** An update moves weights by more than this, or nothing was trained. */
const moved = 1e-4;

export async function run(args: string[], progress: (line: string) => void): Promise<object> {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      kills: { type: "string", default: killPoints.join(",") },
      models: { type: "string", default: "quickstart" },
      seed: { type: "string", default: "6" },
    },
  });
  const points = z.array(z.enum(killPoints)).parse(values.kills.split(","));
  const python = await testPython(progress);
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-bench-resume-"));
  const kills: Kill[] = [];
  try {
    const shape = { seed: Number(values.seed), rollouts: values.quick ? 16 : 64, checkpointEvery };
    for (const policy of await makePolicies(python, path.join(folder, "models"), values.models)) {
      for (const point of points) {
        const data = path.join(folder, `${policy.name}-${kills.length}`);
        const kill = await killOnce(point, { python, folder: data, policy, shape, steps: values.quick ? 4 : 8 });
        progress(`${policy.name}: ${JSON.stringify(kill)}`);
        kills.push(kill);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { kills };
}

async function killOnce(point: KillPoint, scene: Scene): Promise<Kill> {
  const { python, folder, policy, shape, steps } = scene;
  const stored = new StoredRun(shape);
  const first = await startMortalWorker(python, folder, policy.folder);
  try {
    await stored.open(first.server);
    await stored.advance(killStep - 1);
    await dieAt(point, first, stored);
  } finally {
    first.kill();
  }
  const diedAt = await first.died;
  const second = await startMortalWorker(python, folder, policy.folder);
  try {
    const replayedSteps = await stored.open(second.server);
    const resumeS = Math.round(performance.now() - diedAt) / 1000;
    await stored.advance(steps);
    const maxWeightDiff = await compare(stored, second, folder);
    return { killedAt: point, replayedSteps, maxWeightDiff, resumeS };
  } finally {
    await stored.close();
    await second.stop();
  }
}

/** @throws when the step comes to its end all the same */
async function dieAt(point: KillPoint, worker: MortalWorker, stored: StoredRun): Promise<void> {
  if (point !== "between") worker.arm(point);
  try {
    await stored.advance(killStep, point === "between" ? worker.kill : undefined);
  } catch (error) {
    if (error instanceof BoundaryError) return;
    throw error;
  }
  throw new Error(`${point}: the worker was not killed`);
}

/** @returns the largest difference of a weight @throws when the run trained nothing */
async function compare(stored: StoredRun, worker: MortalWorker, folder: string): Promise<number> {
  const tensors = async (checkpoint: string, name: string) =>
    readTensors(await exportModel(worker.server, checkpoint, path.join(folder, "exports", name)));
  const ours = await tensors(await stored.save("end"), "ours");
  const { start, end } = await stored.undisturbed(worker.server);
  const trained = largestDifference(ours, await tensors(start, "start"));
  if (!(trained > moved)) throw new Error(`the run moved no weight by more than ${trained}`);
  return largestDifference(ours, await tensors(end, "undisturbed"));
}
