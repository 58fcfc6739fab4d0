/** The scripted GPU worker as a process of its own, with the flags and the environment of the real one, as far as it has a use for them. */
import { parseArgs } from "node:util";
import { z } from "zod";
import { startScriptedWorker } from "./scripted-worker.ts";

const { values } = parseArgs({
  strict: false,
  options: { host: { type: "string" }, port: { type: "string" } },
});
const { host, port } = z.object({ host: z.string().default("127.0.0.1"), port: z.coerce.number() }).parse(values);
const { ROLLDECK_GPU_WORKER_KEY: apiKey, SCRIPTED_DELAY_MS: delayMs } = z
  .object({ ROLLDECK_GPU_WORKER_KEY: z.string(), SCRIPTED_DELAY_MS: z.coerce.number().default(40) })
  .parse(process.env);
const worker = await startScriptedWorker({ host, port, apiKey, delayMs });
process.on("SIGTERM", () => void worker.close().then(() => process.exit(0)));
console.log("ready");
