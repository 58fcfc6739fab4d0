/**
 * Follows the workers that hold leases: writes when one answers, when its container ended or when it fell silent, renews the leases
 * of the others, removes containers that are to stop or that are nobody's.
 */
import type { FleetReason } from "@rolldeck/contracts/fleet";
import type { SeenWorker } from "@rolldeck/contracts/ports/fleet";
import type { FleetRows, PlacedWorker } from "@rolldeck/contracts/ports/fleet-store";
import type { FleetScene } from "./fleet-scene.ts";
import type { HostWatch } from "./host-watch.ts";
import type { Launches } from "./launches.ts";
import { LogFollowers } from "./log-followers.ts";
import { readHealth } from "./read-health.ts";

/** A large model takes its time to load. */
const bootLimitMs = 900_000;
/** One that answered and does not for so long has ended, whatever its container says. */
const silentLimitMs = 45_000;
/** A worker saves its models before it ends. */
const graceMs = 20_000;

type Containers = ReadonlyMap<string, readonly SeenWorker[]>;

export class WorkerWatch {
  readonly #scene: FleetScene;
  readonly #hosts: HostWatch;
  readonly #launches: Launches;
  readonly #logs: LogFollowers;
  /** Removals under way, by container. */
  readonly #removals = new Map<string, Promise<void>>();
  /** Since when a worker does not answer, monotonic ms. */
  readonly #silentSince = new Map<string, number>();

  constructor(scene: FleetScene, hosts: HostWatch, launches: Launches) {
    this.#scene = scene;
    this.#hosts = hosts;
    this.#launches = launches;
    this.#logs = new LogFollowers(scene);
  }

  async follow(rows: FleetRows, seen: Containers, signal: AbortSignal): Promise<void> {
    const alive = await Promise.all(
      rows.placed.map(async (worker) => {
        const containers = seen.get(worker.host);
        // Nothing is known of it while its host does not answer: its lease runs on, and the planner has the host's state.
        if (containers === undefined) return null;
        const own = containers.find((one) => one.workerId === worker.id && one.claim === worker.claim) ?? null;
        return (await this.#followOne(worker, own, rows, signal)) ? worker : null;
      }),
    );
    await this.#scene.store.renew(alive.filter((worker) => worker !== null));
    this.#removeStrangers(rows, seen, signal);
    for (const id of this.#silentSince.keys())
      if (!rows.placed.some((worker) => worker.id === id)) this.#silentSince.delete(id);
  }

  /** As the supervisor ends: the rows say why before the containers go. */
  async endAll(rows: FleetRows, signal: AbortSignal): Promise<void> {
    const reason = { code: "container-ended", message: "this server was stopped", remedy: null } as const;
    await Promise.all(
      rows.placed.map(async (worker) => {
        const launcher = this.#launcherAt(worker.host, rows);
        if (worker.state !== "stopping") await this.#scene.store.ended(worker, reason, false);
        if (launcher !== null && worker.containerId !== null)
          await launcher.remove(worker.containerId, graceMs, signal).catch((error: unknown) => {
            this.#scene.say(`worker ${worker.id} could not be ended`, error);
          });
      }),
    );
  }

  async idle(): Promise<void> {
    await Promise.all(this.#removals.values());
  }

  /** @returns whether its lease is to be renewed */
  async #followOne(
    worker: PlacedWorker,
    container: SeenWorker | null,
    rows: FleetRows,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (worker.state === "stopping") return this.#stop(worker, container, rows, signal);
    if (worker.state !== "starting" && worker.state !== "ready") return false;
    if (this.#launches.has(worker)) return true;
    if (container === null) {
      // Another process may be starting it, until its lease is past.
      if (worker.state === "starting" && worker.containerId === null && !worker.leasePast) return false;
      const reason = { code: "container-ended", message: "its container is gone", remedy: null } as const;
      await this.#scene.store.ended(worker, reason, false);
      return false;
    }
    if (container.state !== "running" || container.url === null) {
      await this.#scene.store.ended(worker, endReason(container), true);
      return false;
    }
    if (worker.containerId !== container.containerId)
      await this.#scene.store.started(worker, { containerId: container.containerId, url: container.url });
    this.#logs.follow(worker.id, container.containerId, () => this.#launcherAt(worker.host, rows), signal);
    return this.#checkHealth(worker, container.url, signal);
  }

  async #checkHealth(worker: PlacedWorker, url: string, signal: AbortSignal): Promise<boolean> {
    const { store, keyOf } = this.#scene;
    const health = await readHealth(url, keyOf(worker.runId), signal);
    if (health !== null) {
      this.#silentSince.delete(worker.id);
      if (worker.state === "starting" || worker.bootId !== health.bootId) await store.ready(worker, health.bootId);
      return true;
    }
    if (worker.state === "starting") {
      if (worker.placedForMs < bootLimitMs) return true;
    } else {
      const since = this.#silentSince.get(worker.id) ?? performance.now();
      this.#silentSince.set(worker.id, since);
      if (performance.now() - since < silentLimitMs) return true;
    }
    const message = worker.state === "starting" ? "it did not answer after its start" : "it answers no more";
    await store.ended(worker, { code: "silent", message, remedy: "read its log: rolldeck fleet logs" }, true);
    return false;
  }

  async #stop(
    worker: PlacedWorker,
    container: SeenWorker | null,
    rows: FleetRows,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (this.#launches.has(worker)) return true;
    if (container === null) {
      await this.#scene.store.gone(worker);
      return false;
    }
    this.#remove(container.containerId, worker.host, rows, signal);
    return true;
  }

  /** Containers of placements that are over: of a process that was killed, or of a host that came back. */
  #removeStrangers(rows: FleetRows, seen: Containers, signal: AbortSignal): void {
    const placements = new Set(rows.placed.map((worker) => `${worker.id} ${worker.claim}`));
    for (const [host, containers] of seen) {
      for (const one of containers) {
        const placed = { id: one.workerId, claim: one.claim };
        if (placements.has(`${one.workerId} ${one.claim}`) || this.#launches.has(placed)) continue;
        this.#remove(one.containerId, host, rows, signal);
      }
    }
  }

  #remove(containerId: string, host: string, rows: FleetRows, signal: AbortSignal): void {
    if (this.#removals.has(containerId)) return;
    const launcher = this.#launcherAt(host, rows);
    if (launcher === null) return;
    const work = launcher
      .remove(containerId, graceMs, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) this.#scene.say(`a container on ${host} could not be removed`, error);
      })
      .finally(() => this.#removals.delete(containerId));
    this.#removals.set(containerId, work);
  }

  #launcherAt(name: string, rows: FleetRows) {
    const host = rows.hosts.find((one) => one.spec.name === name);
    return host ? this.#hosts.launcher(host.spec) : null;
  }
}

function endReason(container: SeenWorker): FleetReason {
  if (container.outOfMemory)
    return {
      code: "out-of-memory",
      message: "it used all the memory it may",
      remedy: "give it more, or a smaller model",
    };
  const exit = container.exitCode === null ? "" : ` with ${container.exitCode}`;
  return {
    code: "container-ended",
    message: `its container ended${exit}`,
    remedy: "read its log: rolldeck fleet logs",
  };
}
