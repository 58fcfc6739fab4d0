/** The worker process: environment in, signals out. Everything else is `compose`. */
import { InputError } from "@rolldeck/contracts/errors";
import { compose } from "./compose.ts";
import { parseWorkerEnv } from "./env.ts";

async function main(): Promise<void> {
  const worker = await compose(parseWorkerEnv(process.env, process.cwd()));
  await worker.start();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    // A second signal while stopping changes nothing: the stop is bounded.
    process.on(signal, () => void worker.stop().finally(() => process.exit(0)));
  }
  // A supervisor that is gone can't stop us: its IPC channel or standard input closes.
  if (process.channel) process.on("disconnect", () => void worker.stop().finally(() => process.exit(0)));
}

main().catch((error: unknown) => {
  const message =
    error instanceof InputError ? error.message : error instanceof Error ? (error.stack ?? error.message) : error;
  process.stderr.write(`rolldeck worker: ${message}\n`);
  process.exit(1);
});
