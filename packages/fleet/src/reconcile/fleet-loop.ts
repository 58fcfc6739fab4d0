/**
 * Brings the fleet to what its rows say, round by round: looks at every host, writes what it saw, asks the planner, does what it says.
 *
 * Invariants: it remembers nothing that a restart may not lose (who is launching now, when it last looked); a container whose
 * placement is not a row's is removed, and its devices are free only after that; what it does for a placement it writes under that
 * placement's claim, and takes back when the claim is lost. One process runs it at a time.
 */

import type { FleetAction, FleetSnapshot } from "@rolldeck/contracts/fleet";
import type { SeenWorker } from "@rolldeck/contracts/ports/fleet";
import type { FleetRows } from "@rolldeck/contracts/ports/fleet-store";
import { planPlacement } from "../plan/plan-placement.ts";
import type { FleetScene } from "./fleet-scene.ts";
import { HostWatch } from "./host-watch.ts";
import { Launches } from "./launches.ts";
import { OldRuns } from "./old-runs.ts";
import { WorkerWatch } from "./worker-watch.ts";

/** Plans that follow from each other in one round; the rest is the next one's. */
const plansPerRound = 3;

export class FleetLoop {
  readonly #scene: FleetScene;
  readonly #hosts: HostWatch;
  readonly #launches: Launches;
  readonly #workers: WorkerWatch;
  readonly #oldRuns: OldRuns;

  constructor(scene: FleetScene) {
    this.#scene = scene;
    this.#hosts = new HostWatch(scene);
    this.#launches = new Launches(scene, this.#hosts);
    this.#workers = new WorkerWatch(scene, this.#hosts, this.#launches);
    this.#oldRuns = new OldRuns(scene, this.#hosts);
  }

  /** One look and what follows from it; resolves while launches and removals are still under way. */
  async round(signal: AbortSignal): Promise<void> {
    const before = await this.#scene.store.read();
    const seen = await this.#hosts.look(before.hosts, signal);
    await this.#workers.follow(before, seen, signal);
    await this.#act(seen, signal);
    await this.#oldRuns.forget(before, new Set(seen.keys()), signal);
  }

  async #act(seen: ReadonlyMap<string, readonly SeenWorker[]>, signal: AbortSignal): Promise<void> {
    const { store } = this.#scene;
    for (let plan = 0; plan < plansPerRound; plan += 1) {
      signal.throwIfAborted();
      const rows = await store.read();
      const actions = planPlacement(withOccupied(rows, seen));
      for (const action of actions) await this.#do(action, rows, signal);
      if (actions.length === 0) return;
    }
  }

  async #do(action: FleetAction, rows: FleetRows, signal: AbortSignal): Promise<void> {
    const claim = await this.#scene.store.apply(action);
    if (claim === null || action.type !== "place") return;
    const worker = rows.snapshot.workers.find((one) => one.id === action.workerId);
    const host = rows.hosts.find((one) => one.spec.name === action.host);
    if (worker && host) this.#launches.start({ worker, host: host.spec, devices: action.devices, claim }, signal);
  }

  /** Until launches and removals that are under way have ended. */
  async idle(): Promise<void> {
    await Promise.all([this.#launches.idle(), this.#workers.idle(), this.#hosts.idle()]);
  }

  /** Ends all workers, each after it saved its models; those that are wanted start again with the next supervisor. */
  async close(signal: AbortSignal): Promise<void> {
    const rows = await this.#scene.store.read();
    await this.#workers.endAll(rows, signal);
  }
}

/** Devices on which containers stand that no placement answers for; hosts that were not looked at now give nothing away. */
function withOccupied(rows: FleetRows, seen: ReadonlyMap<string, readonly SeenWorker[]>): FleetSnapshot {
  const placements = new Set(rows.placed.map((worker) => `${worker.id} ${worker.claim}`));
  const hosts = rows.snapshot.hosts.map((host) => {
    const containers = seen.get(host.name);
    const strange = containers?.filter((one) => !placements.has(`${one.workerId} ${one.claim}`)) ?? [];
    const occupied = new Set(strange.flatMap((one) => one.devices));
    const devices = host.devices.map((device) => ({
      ...device,
      occupied: containers === undefined || occupied.has(device.id),
    }));
    return { ...host, devices };
  });
  return { ...rows.snapshot, hosts };
}
