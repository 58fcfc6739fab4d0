/** Asks for the worker of the fleet that reads a run's checkpoints, and waits for it, telling what it waits for. */
import { setTimeout as delay } from "node:timers/promises";
import type { Rolldeck } from "@rolldeck/client/rolldeck";
import type { RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import { CommandFailure } from "./command-failure.ts";
import { plain } from "./output.ts";

const everyMs = 1_000;
const toStderr = (line: string): void => void process.stderr.write(`${plain(line)}\n`);

/** Whoever is interrupted leaves a request that ends by itself. @throws CommandFailure where no reader comes */
export async function wakeReader(
  rolldeck: Pick<Rolldeck, "readCheckpoints" | "wakeFleetReader">,
  runId: string,
  { say = toStderr, pauseMs = everyMs } = {},
): Promise<RunCheckpoints> {
  let found = await rolldeck.readCheckpoints(runId);
  // There without a reader: the run's own worker, or a run that needs none.
  if (found.exportRefusal === null) return found;
  if (found.fleet?.state !== "coming") found = await rolldeck.wakeFleetReader(runId);
  for (let told = ""; found.exportRefusal !== null; ) {
    const message = found.fleet?.message ?? found.exportRefusal;
    if (found.fleet?.state !== "coming") throw new CommandFailure(plain(message));
    if (message !== told) say(message);
    told = message;
    await delay(pauseMs);
    found = await rolldeck.readCheckpoints(runId);
  }
  return found;
}
