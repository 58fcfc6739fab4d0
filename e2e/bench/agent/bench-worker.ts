/** The real worker with the benchmark's tasks and tool. ROLLDECK_BENCH_PROMPTS: lengths of first prompts, comma-separated. */
import { tools } from "@rolldeck/tools/registry";
import { compose } from "../../../apps/worker/src/compose.ts";
import { parseWorkerEnv } from "../../../apps/worker/src/env.ts";
import { echo, echoTask } from "./echo-task.ts";

const prompts = (process.env.ROLLDECK_BENCH_PROMPTS ?? "").split(",").map(Number);
const tasks = Object.fromEntries(prompts.map(echoTask).map((task) => [task.name, task]));
const worker = await compose(parseWorkerEnv(process.env, import.meta.dirname), { tasks, tools: { ...tools, echo } });
process.once("SIGTERM", () => {
  worker.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
await worker.start();
process.stdout.write("worker started\n");
