/**
 * The fleet of GPU workers belongs to the supervisor: here its loop runs, round after round, while this process lives. Invariants: a
 * round that fails is told and followed by another one; a supervisor that was killed leaves workers running, and the next one
 * takes them over; one that is stopped ends them.
 */
import { appendFileSync, closeSync, mkdirSync, openSync, readSync, renameSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { FleetHostSpec } from "@rolldeck/contracts/fleet";
import type { WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import { withFleetLock } from "@rolldeck/db/fleet/fleet-lock";
import { fleetStore } from "@rolldeck/db/fleet/fleet-store";
import { fleetId } from "@rolldeck/fleet/fleet-id";
import { type Deployment, launcherOf } from "@rolldeck/fleet/launchers";
import type { LocalWorkers } from "@rolldeck/fleet/process/process-launcher";
import { FleetLoop } from "@rolldeck/fleet/reconcile/fleet-loop";
import { timeOf } from "@rolldeck/fleet/reconcile/log-followers";
import { runKey } from "@rolldeck/fleet/run-key";
import type { Pool } from "pg";
import { say } from "./console-lines.ts";

const everyMs = 1_000;
/** Workers save their models; what takes longer is killed with its container. */
const closeLimitMs = 30_000;
/** Of one worker's log; the one before is kept beside it. */
const maxLogBytes = 10_000_000;

export interface FleetOptions {
  readonly pool: Pool;
  /** Id of this deployment's database. */
  readonly deployment: string;
  readonly secret: string;
  /** Gets a file for each worker. */
  readonly logFolder: string;
  /** For workers as processes of this machine; without it there are none. */
  readonly local?: LocalWorkers;
  readonly launcherOf?: (host: FleetHostSpec, deployment: Deployment) => WorkerLauncher;
}

export interface SupervisedFleet {
  /** Ends the loop and the workers; those that are wanted start again with the next supervisor. */
  close(): Promise<void>;
  /** Ends the loop alone, as a kill would: workers run on, and the next supervisor takes them over. */
  abandon(): Promise<void>;
}

/** Starts the loop. */
export function superviseFleet(options: FleetOptions): SupervisedFleet {
  const { pool, deployment, secret, logFolder } = options;
  const make = options.launcherOf ?? launcherOf;
  const ending = new AbortController();
  const loop = new FleetLoop({
    store: fleetStore(pool),
    launcherOf: (host) => make(host, { fleet: fleetId(deployment, secret), local: options.local ?? null }),
    keyOf: (runId) => runKey(secret, runId),
    say: (message, error) => say("fleet", error instanceof Error ? `${message}: ${error.message}` : message),
    onLog: workerLog(logFolder),
    onForgotten: (workerIds) => {
      for (const workerId of workerIds) removeLog(logFolder, workerId);
    },
    loggedUntil: (workerId) => lastTime(logFile(logFolder, workerId)),
  });
  const running = run(loop, pool, ending.signal);
  const abandon = async (): Promise<void> => {
    ending.abort();
    await running;
    await loop.idle();
  };
  return {
    abandon,
    close: async () => {
      await abandon();
      await withFleetLock(pool, () => loop.close(AbortSignal.timeout(closeLimitMs)));
    },
  };
}

async function run(loop: FleetLoop, pool: Pool, signal: AbortSignal): Promise<void> {
  let told = "";
  while (!signal.aborted) {
    try {
      await withFleetLock(pool, () => loop.round(signal));
      told = "";
    } catch (error) {
      // The same trouble once a second is said once.
      const trouble = error instanceof Error ? error.message : String(error);
      if (!signal.aborted && trouble !== told) say("fleet", trouble);
      told = trouble;
    }
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

function workerLog(folder: string): (workerId: string, line: string) => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return (workerId, line) => {
    const file = logFile(folder, workerId);
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > maxLogBytes) renameSync(file, `${file}.1`);
    appendFileSync(file, `${line}\n`, { mode: 0o600 });
  };
}

const logFile = (folder: string, workerId: string): string => path.join(folder, `${workerId}.log`);
function removeLog(folder: string, workerId: string): void {
  const file = logFile(folder, workerId);
  for (const one of [file, `${file}.1`]) rmSync(one, { force: true });
}

/** Lines are shorter by far. */
const lastBytes = 65_536;

/** When its last line was said; null where there is none. */
function lastTime(file: string): string | null {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0) return null;
  const end = Buffer.alloc(Math.min(size, lastBytes));
  const handle = openSync(file, "r");
  try {
    readSync(handle, end, 0, end.length, size - end.length);
  } finally {
    closeSync(handle);
  }
  const times = end
    .toString("utf8")
    .split("\n")
    .map(timeOf)
    .filter((time) => time !== "");
  return times.at(-1) ?? null;
}
