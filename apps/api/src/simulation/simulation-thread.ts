/** Main module of a thread that plays one simulation, or one comparison, and ends: requests are answered meanwhile, and it can be stopped midway. */
import { parentPort, workerData } from "node:worker_threads";
import { overlapEstimate } from "@rolldeck/dispatch/simulator/overlap-estimate";
import { predictRun } from "@rolldeck/dispatch/simulator/predict-run";
import { runScenario } from "@rolldeck/dispatch/simulator/run-scenario";
import { playSimulation } from "./play-simulation.ts";
import type { AnswerFromThread, FromThread, ThreadTask } from "./thread-message.ts";

const say = (message: FromThread | AnswerFromThread): void => parentPort?.postMessage(message);
// What this process's own thread was given by its parent: no input of anybody else.
const task: ThreadTask = workerData;
try {
  if ("overlap" in task) say({ overlap: overlapEstimate(task.overlap, task.seeds) });
  else if ("stepsToTake" in task) say({ predicted: predictRun(runScenario(task.run), task.seeds, task.stepsToTake) });
  else say({ result: playSimulation(task, (played) => say({ played })) });
} catch (error) {
  say({ failed: error instanceof Error ? error.message : String(error) });
}
