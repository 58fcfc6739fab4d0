/** The worker process: environment in, signals out. Everything else is `compose`. */
import { InputError } from "@rolldeck/contracts/errors";
import { compose } from "./compose.ts";
import { parseWorkerEnv } from "./env.ts";
import { keepHeapLean } from "./lean-heap.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** Whatever still hangs then is taken over by another worker once its lease is past. */
const stopLimitMs = 9_500;

async function main(): Promise<void> {
  keepHeapLean();
  const worker = await compose(parseWorkerEnv(process.env, process.cwd()));
  await worker.start();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void stop(worker));
  // A supervisor that is gone can't stop us: its channel closes.
  if (process.channel) process.on("disconnect", () => void stop(worker));
}

/** A second signal while stopping changes nothing. */
async function stop(worker: WorkerProcess): Promise<void> {
  setTimeout(() => process.exit(1), stopLimitMs).unref();
  await worker.stop();
  process.exit(0);
}

main().catch((error: unknown) => {
  const known = error instanceof InputError;
  const message = error instanceof Error && !known ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`rolldeck worker: ${message}\n`);
  process.exit(1);
});
