/** Main module of a thread that plays one simulation and ends: requests are answered meanwhile, and it can be stopped midway. */
import { parentPort, workerData } from "node:worker_threads";
import { playSimulation } from "./play-simulation.ts";
import type { FromThread, SimulationTask } from "./thread-message.ts";

const say = (message: FromThread): void => parentPort?.postMessage(message);
// What this process's own thread was given by its parent: no input of anybody else.
const task: SimulationTask = workerData;
try {
  say({ result: playSimulation(task, (played) => say({ played })) });
} catch (error) {
  say({ failed: error instanceof Error ? error.message : String(error) });
}
