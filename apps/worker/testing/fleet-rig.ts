/**
 * A rig whose runs have GPU workers of their own: the fleet's loop over hosts in this process, on each of which a worker is a scripted
 * model server with the run's key.
 */
import { type ScriptedWorker, startScriptedWorker } from "@rolldeck/backends/testing/scripted-worker";
import type { FleetHostSpec } from "@rolldeck/contracts/fleet";
import { addFleetHost } from "@rolldeck/db/fleet/fleet-hosts";
import { fleetStore } from "@rolldeck/db/fleet/fleet-store";
import { FleetLoop } from "@rolldeck/fleet/reconcile/fleet-loop";
import { runKey } from "@rolldeck/fleet/run-key";
import { MemoryHost, type StartWorker } from "@rolldeck/fleet/testing/memory-hosts";
import { sleep } from "../src/wait-for.ts";
import { type Rig, type RigOptions, startRig } from "./rig.ts";

const secret = "a-secret-of-this-test-that-is-long-enough";
const everyMs = 100;

export interface FleetRig extends Rig {
  readonly hosts: readonly MemoryHost[];
  /** Every scripted server that was started, in their order. */
  readonly started: readonly ScriptedWorker[];
}

/** @param hosts registrations, one for each host */
export async function startFleetRig(
  hosts: readonly Partial<FleetHostSpec>[],
  options: RigOptions = {},
): Promise<FleetRig> {
  const rig = await startRig({ ...options, env: { ROLLDECK_FLEET_SECRET: secret, ...options.env } });
  const { pool } = rig.database;
  const started: ScriptedWorker[] = [];
  const start: StartWorker = async ({ key }) => {
    const server = await startScriptedWorker({ ...options, apiKey: key });
    started.push(server);
    let exitCode: number | null = null;
    const end = (code: number) => async (): Promise<void> => {
      if (exitCode !== null) return;
      exitCode = code;
      await server.close();
    };
    return { url: server.url, kill: end(137), stop: end(0), exitCode: () => exitCode };
  };
  const made = hosts.map((_, at) => new MemoryHost(`host-${at}`, start));
  for (const [at, host] of made.entries()) await addFleetHost(pool, host.spec(hosts[at]));
  const byName = new Map(made.map((host) => [host.name, host]));
  const loop = new FleetLoop({
    store: fleetStore(pool),
    launcherOf: ({ name }) => byName.get(name) ?? made[0] ?? new MemoryHost(name, start),
    keyOf: (runId) => runKey(secret, runId),
    say: () => undefined,
  });
  const ending = new AbortController();
  const rounds = (async () => {
    while (!ending.signal.aborted) {
      await loop.round(ending.signal).catch((error: unknown) => {
        if (!ending.signal.aborted) throw error;
      });
      await sleep(everyMs);
    }
  })();
  const close = async (): Promise<void> => {
    ending.abort();
    await rounds;
    await loop.idle();
    await Promise.all(made.map((host) => host.close()));
    await rig.close();
  };
  return { ...rig, hosts: made, started, close };
}
