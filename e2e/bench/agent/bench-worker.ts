/**
 * The real worker with the benchmark's tasks and tool. ROLLDECK_BENCH_PROMPTS: lengths of first prompts, comma-separated.
 * ROLLDECK_BENCH_PROFILE: file that a CPU profile of the whole process is written to when it stops.
 */
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { tools } from "@rolldeck/tools/registry";
import { compose } from "../../../apps/worker/src/compose.ts";
import { parseWorkerEnv } from "../../../apps/worker/src/env.ts";
import { keepHeapLean } from "../../../apps/worker/src/lean-heap.ts";
import { echo, echoTask } from "./echo-task.ts";

keepHeapLean();

const prompts = (process.env.ROLLDECK_BENCH_PROMPTS ?? "").split(",").map(Number);
const tasks = Object.fromEntries(prompts.map(echoTask).map((task) => [task.name, task]));
const worker = await compose(parseWorkerEnv(process.env, import.meta.dirname), { tasks, tools: { ...tools, echo } });
const profile = process.env.ROLLDECK_BENCH_PROFILE;
const session = new Session();
if (profile !== undefined) {
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.start");
}
async function stop(): Promise<void> {
  if (profile !== undefined) {
    const { profile: taken } = await session.post("Profiler.stop");
    writeFileSync(profile, JSON.stringify(taken));
  }
  await worker.stop();
}
process.once("SIGTERM", () => {
  stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
await worker.start();
process.stdout.write("worker started\n");
