/**
 * A fleet that exists only in memory: it does what the planner says, with hosts that go and come back, containers that end, and
 * runs that are over after some time of work. Throws where a plan can't be carried out.
 */
import {
  type DeviceSnapshot,
  endedFleetWorkerStates,
  type FleetAction,
  type FleetSnapshot,
  type HostSnapshot,
  type HostState,
  type WorkerSnapshot,
} from "@rolldeck/contracts/fleet";
import { planPlacement } from "../src/plan/plan-placement.ts";
import { canWork } from "../src/plan/waiting-line.ts";

type Changing<T> = { -readonly [K in keyof T]: T[K] };
export type WorldWorker = Changing<WorkerSnapshot>;

export const tickMs = 1_000;

export const worker = (over: Partial<WorkerSnapshot> & { readonly id: string }): WorkerSnapshot => ({
  runId: over.id,
  role: "colocated",
  device: "gpu",
  devices: 1,
  memoryMb: 0,
  priority: 0,
  wanted: true,
  state: "queued",
  host: null,
  reason: null,
  queuedAt: 0,
  notBefore: null,
  failures: 0,
  ...over,
});

/** Devices get ids that no other host's have. @param memories MB of each GPU */
export const gpuHost = (name: string, memories: readonly number[], over: Partial<HostSnapshot> = {}): HostSnapshot => ({
  name,
  state: "ready",
  gpuRuntime: true,
  devices: memories.map((memoryMb, at): DeviceSnapshot => ({ id: `GPU-${name}-${at}`, kind: "gpu", memoryMb })),
  ...over,
});

export class FleetWorld {
  now = 0;
  readonly workers: WorldWorker[];
  readonly hosts: Changing<HostSnapshot>[];
  /** Device to worker. */
  readonly leases = new Map<string, string>();
  /** Ticks that each run still has to work. */
  readonly toDo = new Map<string, number>();

  constructor(hosts: readonly HostSnapshot[], workers: readonly WorkerSnapshot[] = [], workTicks = 2) {
    this.hosts = hosts.map((host) => ({ ...host }));
    this.workers = [];
    this.add(workers, workTicks);
  }

  add(workers: readonly WorkerSnapshot[], workTicks: number): void {
    for (const one of workers) {
      this.workers.push({ ...one, queuedAt: this.now });
      this.toDo.set(one.runId, workTicks);
    }
  }

  snapshot(): FleetSnapshot {
    const leases = [...this.leases].map(([deviceId, workerId]) => ({ deviceId, workerId }));
    return { now: this.now, hosts: this.hosts, workers: this.workers, leases };
  }

  setHost(name: string, state: HostState): void {
    for (const host of this.hosts) if (host.name === name) host.state = state;
  }

  endContainer(id: string): void {
    const ended = this.#worker(id);
    if (ended.state === "ready" || ended.state === "starting") {
      ended.state = "lost";
      ended.failures += 1;
    }
  }

  /** Plans until nothing is left to say; at most `rounds`. */
  settle(rounds = 12): FleetAction[] {
    const all: FleetAction[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const actions = planPlacement(this.snapshot());
      if (actions.length === 0) return all;
      for (const action of actions) this.apply(action);
      this.#finishStops();
      all.push(...actions);
    }
    throw new Error(`the planner is not done after ${rounds} rounds: ${JSON.stringify(all.slice(-3))}`);
  }

  /** One moment later: what started serves, what serves works, what has worked enough is over. */
  tick(): void {
    this.now += tickMs;
    for (const one of this.workers) if (one.state === "starting" && this.#isUp(one)) one.state = "ready";
    for (const [runId, left] of this.toDo) {
      const ready = this.workers.filter((one) => one.runId === runId && one.state === "ready" && this.#isUp(one));
      if (left > 0 && canWork(ready)) this.toDo.set(runId, left - 1);
      if (left === 1 && canWork(ready)) for (const one of this.workers) if (one.runId === runId) one.wanted = false;
    }
  }

  isOver(runId: string): boolean {
    const own = this.workers.filter((one) => one.runId === runId);
    return own.every((one) => endedFleetWorkerStates.includes(one.state));
  }

  apply(action: FleetAction): void {
    const changed = this.#worker(action.workerId);
    switch (action.type) {
      case "place":
        this.#place(changed, action.host, action.devices);
        return;
      case "queue":
        changed.reason = action.reason;
        return;
      case "stop":
        changed.state = changed.state === "queued" ? "stopped" : "stopping";
        changed.reason = action.reason;
        return;
      case "restart":
        this.#release(changed.id);
        changed.state = "queued";
        changed.notBefore = changed.failures > 0 ? this.now + tickMs : null;
        changed.reason = action.reason;
        return;
      default:
        this.#release(changed.id);
        changed.state = action.type === "refuse" ? "refused" : "failed";
        changed.reason = action.reason;
    }
  }

  #place(placed: WorldWorker, hostName: string, devices: readonly string[]): void {
    const host = this.hosts.find((one) => one.name === hostName);
    if (placed.state !== "queued" || !placed.wanted)
      throw new Error(`${placed.id} is ${placed.state}, not in the queue`);
    if ((placed.notBefore ?? 0) > this.now) throw new Error(`${placed.id} was to wait`);
    if (host?.state !== "ready") throw new Error(`${hostName} takes nothing`);
    if (new Set(devices).size !== placed.devices) throw new Error(`${placed.id} got ${devices.length} devices`);
    for (const id of devices) {
      const device = host.devices.find((one) => one.id === id);
      if (device?.kind !== placed.device || device.memoryMb < placed.memoryMb) throw new Error(`${id} does not serve`);
      if (this.leases.has(id) || device.occupied) throw new Error(`${id} is leased twice`);
      this.leases.set(id, placed.id);
    }
    Object.assign(placed, { state: "starting", host: hostName, reason: null, notBefore: null });
  }

  #finishStops(): void {
    for (const one of this.workers) {
      if (one.state !== "stopping") continue;
      this.#release(one.id);
      one.state = one.wanted && one.reason?.code !== "unwanted" ? "queued" : "stopped";
    }
  }

  #isUp(one: WorldWorker): boolean {
    return this.hosts.some((host) => host.name === one.host && host.state !== "lost");
  }
  #release(id: string): void {
    for (const [device, holder] of this.leases) if (holder === id) this.leases.delete(device);
  }
  #worker(id: string): WorldWorker {
    const found = this.workers.find((one) => one.id === id);
    if (found === undefined) throw new Error(`no worker ${id}`);
    return found;
  }
}
