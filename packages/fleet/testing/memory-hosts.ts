/**
 * Hosts of a fleet whose workers a test starts itself, as processes or within its own: everything of the fleet but Docker is real. What
 * runs on a host is read from the host, as with a daemon, so a second supervisor takes it over.
 */
import type { FleetHostSpec } from "@rolldeck/contracts/fleet";
import type { HostFacts, LaunchSpec, SeenWorker, WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import { LaunchFailure } from "../src/launch-failure.ts";

/** One that runs. */
export interface StartedWorker {
  readonly url: string;
  /** At once, as SIGKILL would. */
  kill(): Promise<void>;
  /** As it is asked to. */
  stop(): Promise<void>;
  /** Null while it runs. */
  exitCode(): number | null;
}
export type StartWorker = (spec: LaunchSpec, host: MemoryHost) => Promise<StartedWorker>;

interface Container extends SeenWorker {
  readonly spec: LaunchSpec;
  readonly worker: StartedWorker;
}

const gone = (name: string) =>
  new LaunchFailure({ code: "unavailable", message: `${name} does not answer`, remedy: null }, { retryable: true });

export class MemoryHost implements WorkerLauncher {
  readonly name: string;
  readonly #start: StartWorker;
  readonly #containers = new Map<string, Container>();
  readonly forgotten: string[] = [];
  /** UUIDs of its GPUs; null: it can give containers none. */
  gpus: readonly string[] | null = null;
  /** Of every container, each with its time; a stream of them breaks off at their end. */
  logLines: readonly string[] = [];
  #silent: "fails" | "hangs" | null = null;
  #count = 0;

  constructor(name: string, start: StartWorker) {
    this.name = name;
    this.#start = start;
  }

  /** As its registration would be; nobody connects to the endpoint. */
  spec(over: Partial<FleetHostSpec> = {}): FleetHostSpec {
    return {
      name: this.name,
      endpoint: { kind: "socket", path: `/nowhere/${this.name}` },
      ...{ address: "127.0.0.1", cpuPlaces: 1, cpuMemoryMb: 512, image: "none" },
      ...{ modelFolder: null, checkpointFolder: null, checkpointShare: null },
      ...over,
    };
  }

  /** What runs there. */
  running(): Container[] {
    return [...this.#containers.values()].filter(({ worker }) => worker.exitCode() === null);
  }

  /** Its daemon no longer answers; what runs there runs on. Null: it answers again. */
  silence(how: "fails" | "hangs" | null): void {
    this.#silent = how;
  }

  async close(): Promise<void> {
    await Promise.all(this.running().map(({ worker }) => worker.kill()));
  }

  async facts(signal?: AbortSignal): Promise<HostFacts> {
    await this.#answer(signal);
    const gpus = (this.gpus ?? []).map((uuid, index) => ({ uuid, index, model: "test", memoryMb: 1 }));
    const machine = { daemon: "test", system: "test", cpus: 2, memoryMb: 4_096, runtimes: [], cdiDevices: [] };
    return { ...machine, gpuRuntime: this.gpus === null ? null : "nvidia", gpus, probeTrouble: null };
  }

  /** @throws LaunchFailure; the signal's reason while it hangs */
  async #answer(signal?: AbortSignal): Promise<void> {
    if (this.#silent === "fails") throw gone(this.name);
    while (this.#silent === "hangs") {
      signal?.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async seen(signal?: AbortSignal): Promise<SeenWorker[]> {
    await this.#answer(signal);
    return [...this.#containers.values()].map((one) => {
      const exitCode = one.worker.exitCode();
      const { containerId, workerId, claim, devices } = one;
      const [state, url] = exitCode === null ? (["running", one.url] as const) : (["ended", null] as const);
      return { containerId, workerId, claim, devices, state, url, exitCode, outOfMemory: false };
    });
  }

  async launch(
    spec: LaunchSpec,
    signal?: AbortSignal,
  ): Promise<{ readonly containerId: string; readonly url: string }> {
    await this.#answer(signal);
    if (spec.device === "gpu" && this.gpus === null)
      throw new LaunchFailure({ code: "no-gpu-runtime", message: `needs a GPU; ${this.name} has none`, remedy: null });
    const worker = await this.#start(spec, this);
    const containerId = `${this.name}-${++this.#count}`;
    const { workerId, claim, devices } = spec;
    const state = { state: "running", exitCode: null, outOfMemory: false } as const;
    this.#containers.set(containerId, {
      containerId,
      workerId,
      claim,
      devices,
      url: worker.url,
      ...state,
      spec,
      worker,
    });
    return { containerId, url: worker.url };
  }

  async remove(containerId: string, graceMs: number, signal?: AbortSignal): Promise<void> {
    await this.#answer(signal);
    const worker = this.#containers.get(containerId)?.worker;
    if (worker !== undefined && worker.exitCode() === null) {
      const limit = setTimeout(() => void worker.kill(), graceMs);
      await worker.stop();
      clearTimeout(limit);
    }
    this.#containers.delete(containerId);
  }

  async forgetRun(runId: string): Promise<void> {
    this.forgotten.push(runId);
  }

  async *logs(): AsyncGenerator<string> {
    yield* this.logLines;
    throw gone(this.name);
  }
}
