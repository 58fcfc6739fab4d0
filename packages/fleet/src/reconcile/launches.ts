/** Launches that are under way. What one of them comes to is written under its claim; a container whose claim was lost is removed. */
import type { FleetHostSpec, WorkerSnapshot } from "@rolldeck/contracts/fleet";
import type { Placed } from "@rolldeck/contracts/ports/fleet-store";
import { LaunchFailure } from "../launch-failure.ts";
import type { FleetScene } from "./fleet-scene.ts";
import type { HostWatch } from "./host-watch.ts";

const graceMs = 2_000;

export interface Launch {
  readonly worker: WorkerSnapshot;
  readonly host: FleetHostSpec;
  readonly devices: readonly string[];
  readonly claim: number;
}

export class Launches {
  readonly #scene: FleetScene;
  readonly #hosts: HostWatch;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(scene: FleetScene, hosts: HostWatch) {
    this.#scene = scene;
    this.#hosts = hosts;
  }

  /** This process is at it: no container of it need be there yet. */
  has({ id, claim }: Placed): boolean {
    return this.#underWay.has(`${id} ${claim}`);
  }

  start(launch: Launch, signal: AbortSignal): void {
    const key = `${launch.worker.id} ${launch.claim}`;
    const work = this.#launch(launch, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) this.#scene.say(`starting worker ${launch.worker.id} failed`, error);
      })
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, work);
  }

  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay.values());
  }

  async #launch(launch: Launch, signal: AbortSignal): Promise<void> {
    const { worker, host, devices, claim } = launch;
    const launcher = this.#hosts.launcher(host);
    const placed = { id: worker.id, claim };
    try {
      const container = await launcher.launch(
        {
          ...{ workerId: worker.id, claim, runId: worker.runId, role: worker.role, device: worker.device, devices },
          memoryMb: worker.device === "cpu" ? host.cpuMemoryMb : null,
          ...{ image: host.image, key: this.#scene.keyOf(worker.runId), address: host.address },
          ...{ reads: worker.reads ?? [], checkpointFolder: host.checkpointFolder, modelFolder: host.modelFolder },
        },
        signal,
      );
      const ours = await this.#scene.store.started(placed, container);
      if (!ours) await launcher.remove(container.containerId, graceMs, AbortSignal.timeout(60_000));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof LaunchFailure)) throw error;
      await this.#failed(placed, host, error, signal);
    }
  }

  /** A host that fell silent is no fault of the worker's, nor is one that can give containers no GPU any more: others may. */
  async #failed(placed: Placed, host: FleetHostSpec, failure: LaunchFailure, signal: AbortSignal): Promise<void> {
    const { reason, retryable } = failure;
    const gone = reason.code === "no-gpu-runtime" && (await this.#hasNoGpus(host, signal));
    await this.#scene.store.ended(placed, reason, !gone && !(retryable && reason.code === "unavailable"));
  }

  /** Takes the host as it is now, so that nothing more is placed on devices that it no longer has. */
  async #hasNoGpus(host: FleetHostSpec, signal: AbortSignal): Promise<boolean> {
    try {
      const facts = await this.#hosts.launcher(host).facts(signal);
      await this.#scene.store.hostFacts(host.name, facts);
      return facts.gpuRuntime === null;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof LaunchFailure)) throw error;
      return false;
    }
  }
}
