/** Bundled servers have the thread's bundle beside their own; from source, the thread reads source as this process does. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import type { ThreadTask } from "./thread-message.ts";

const maxHeapMegabytes = 512;

export function startThread(task: ThreadTask): Worker {
  const here = import.meta.url;
  const options = { workerData: task, resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes }, execArgv: [] };
  if (!here.endsWith(".ts")) return new Worker(new URL("./simulation-thread.mjs", here), options);
  const tsx = pathToFileURL(createRequire(here).resolve("tsx"));
  const [loader, main] = [new URL("./esm/api/index.mjs", tsx), new URL("./simulation-thread.ts", here)].map(
    ({ href }) => JSON.stringify(href),
  );
  return new Worker(`import(${loader}).then(({ register }) => { register(); return import(${main}); });`, {
    ...options,
    eval: true,
  });
}
