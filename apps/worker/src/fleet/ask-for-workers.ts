/**
 * A run's workers on the fleet: asked for when its model is prepared, and waited for with the fleet's own words. What the fleet can't give
 * ends the run with the reason; everything else is a matter of time.
 */
import { InputError } from "@rolldeck/contracts/errors";
import type { FleetDemand, RunWorker } from "@rolldeck/contracts/fleet";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { readRunFiles } from "@rolldeck/db/fleet/readers";
import { readRunWorkers } from "@rolldeck/db/fleet/run-workers";
import { wantWorkers } from "@rolldeck/db/fleet/want-workers";
import type { Pool } from "pg";
import type { BootProgress } from "../training/boot-progress.ts";

/** It can sample: by itself, or one of its samplers does. */
export async function canSample(pool: Pool, runId: string, { layout }: FleetDemand): Promise<boolean> {
  if (layout === "colocated") return true;
  return (await readRunWorkers(pool, runId)).some(({ role, state }) => role === "sampler" && state === "ready");
}

/**
 * Asks for them; those that are there stay. A run that begins with another's weights has them where that one's files are.
 * @throws InputError where one of them has ended for good
 */
export async function askForWorkers(
  pool: Pool,
  runId: string,
  demand: FleetDemand,
  startFrom: RunConfig["model"]["startFrom"],
): Promise<void> {
  const broken = (await readRunWorkers(pool, runId)).find(endedForGood);
  if (broken !== undefined) throw refusal(broken);
  const files = startFrom === null ? null : await readRunFiles(pool, startFrom.run);
  if (files === null) await wantWorkers(pool, runId, demand);
  else {
    const reads = [...new Set([files.ownerId, ...files.reads])];
    await wantWorkers(pool, runId, demand, { filesOn: files.host, reads });
  }
}

/**
 * Tells the run's page what its workers wait for.
 * @param served a version of its model has served: a fleet that has become too small is waited for
 * @throws InputError where waiting can't help
 */
export async function tellOfWorkers(
  pool: Pool,
  { runId, boot, served }: { readonly runId: string; readonly boot: BootProgress; readonly served: boolean },
): Promise<void> {
  const workers = (await readRunWorkers(pool, runId)).filter(({ wanted }) => wanted);
  const refused = workers.find((worker) => endedForGood(worker) || (!served && isTooLarge(worker)));
  if (refused !== undefined) throw refusal(refused);
  const waiting = workers.find(({ state }) => state !== "ready");
  if (waiting === undefined) await boot.report("model-server", "its GPU worker on the fleet does not answer");
  else if (waiting.state === "starting") await boot.report("model-server", startingText(waiting));
  else await boot.report("waiting-for-worker", waitingText(waiting));
}

const endedForGood = ({ wanted, state }: RunWorker): boolean => wanted && (state === "refused" || state === "failed");
const isTooLarge = ({ state, reason }: RunWorker): boolean =>
  state === "queued" && (reason?.code === "too-large" || reason?.code === "apart");

const nameOf = ({ role, replica }: RunWorker): string =>
  role === "colocated" ? "the GPU worker" : role === "trainer" ? "the trainer" : `sampler ${replica + 1}`;

const startingText = (worker: RunWorker): string => `${nameOf(worker)} starts on host ${worker.host}`;

/** The remedy beside the reason, where there is one. */
function waitingText(worker: RunWorker): string {
  const { reason } = worker;
  if (reason === null) return `${nameOf(worker)} waits for its place on the fleet`;
  return `${nameOf(worker)} ${reason.message}${reason.remedy === null ? "" : `: ${reason.remedy}`}`;
}

function refusal(worker: RunWorker): InputError {
  const { reason } = worker;
  const why = reason === null ? "ended for good" : `${reason.message} (${reason.code})`;
  // What ends a run has no field for a fix.
  const remedy = reason?.remedy == null ? "" : `: ${reason.remedy}`;
  return new InputError([{ path: "backend.fleet", message: `${nameOf(worker)} ${why}${remedy}` }]);
}
