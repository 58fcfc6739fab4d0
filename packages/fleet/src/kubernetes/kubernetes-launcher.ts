/**
 * GPU workers as pods of one namespace. Invariants: a launch that fails leaves no pod and no key; what belongs to another fleet is not
 * seen and not touched. Which GPU a pod gets is the cluster's to say, so that a device here is one of so many, not a UUID; where the
 * nodes that hold them can't give a pod all that it wants, the launch fails with what the scheduler says, and is tried again.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { KubernetesEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { HostFacts, LaunchSpec, LogOptions, SeenWorker, WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import { LaunchFailure } from "../launch-failure.ts";
import type { Pod } from "./answers.ts";
import { FleetCluster } from "./cluster.ts";
import { podState, startTrouble } from "./pod-state.ts";
import { factsOf } from "./read-nodes.ts";
import { devicesAnnotation, keySecret, labels, podName, workerPod, workerPort, workerRole } from "./worker-pod.ts";

export interface KubernetesHost {
  readonly name: string;
  readonly endpoint: KubernetesEndpoint;
  /** Which workers are ours: the id of the deployment. */
  readonly fleet: string;
  /** Between looks at a pod that starts or ends. */
  readonly pollMs?: number;
  /** A pod that no node takes for so long is given back: others of its size may fit elsewhere. */
  readonly unscheduledMs?: number;
}

/** An image of several GB may still have to come. */
const startMs = 900_000;
/** Beyond its grace. */
const goneMs = 60_000;

export class KubernetesLauncher implements WorkerLauncher {
  readonly #host: KubernetesHost;
  #opened: Promise<FleetCluster> | null = null;

  constructor(host: KubernetesHost) {
    this.#host = host;
  }

  /** A kubeconfig that can't be used is told, and read again by the next who asks. */
  #cluster(): Promise<FleetCluster> {
    this.#opened ??= FleetCluster.open(this.#host).catch((error: unknown) => {
      this.#opened = null;
      throw error;
    });
    return this.#opened;
  }

  async facts(signal: AbortSignal): Promise<HostFacts> {
    const cluster = await this.#cluster();
    const [version, nodes] = await Promise.all([cluster.version(signal), cluster.nodes(signal)]);
    return factsOf(this.#host.name, version, nodes);
  }

  async seen(signal: AbortSignal): Promise<SeenWorker[]> {
    const cluster = await this.#cluster();
    const pods = await cluster.pods({ [labels.fleet]: this.#host.fleet, [labels.role]: workerRole }, signal);
    return pods.map(seenWorker).filter((one) => one !== null);
  }

  async launch(spec: LaunchSpec, signal: AbortSignal): Promise<{ readonly containerId: string; readonly url: string }> {
    const { name: host, fleet, endpoint } = this.#host;
    const scene = { fleet, host, endpoint };
    const pod = workerPod(spec, scene);
    const cluster = await this.#cluster();
    const name = podName(spec);
    // A launch of the same placement that was cut off half-way.
    await this.#removeNow(cluster, name, 0, signal);
    try {
      const made = await cluster.createPod(pod, signal);
      // After the pod, whose it is from its first moment on; its container waits for it.
      await cluster.createSecret(keySecret(spec, scene, made.metadata.uid), signal);
      return { containerId: name, url: await this.#running(cluster, name, signal) };
    } catch (error) {
      // What could not be removed now is seen by the next round as nobody's, and removed then.
      await this.#removeNow(cluster, name, 0, AbortSignal.timeout(goneMs)).catch(() => undefined);
      signal.throwIfAborted();
      throw error;
    }
  }

  async #running(cluster: FleetCluster, name: string, signal: AbortSignal): Promise<string> {
    const begun = Date.now();
    while (Date.now() - begun < startMs) {
      const pod = await cluster.pod(name, signal);
      if (pod === null) throw this.#failed(`pod ${name} was deleted while it started`, true);
      const { state, url } = podState(pod, workerPort);
      if (url !== null) return url;
      const trouble = startTrouble(pod, Date.now() - begun > (this.#host.unscheduledMs ?? 30_000));
      if (trouble !== null) throw new LaunchFailure(trouble.reason, { retryable: trouble.retryable });
      if (state === "ended") throw this.#failed(`pod ${name} ended at once`, false);
      await pause(this.#pollMs, signal);
    }
    throw this.#failed(`pod ${name} did not start in ${startMs / 60_000} minutes`, true);
  }

  #failed(message: string, retryable: boolean): LaunchFailure {
    const words = `${message} on ${this.#host.name}`;
    return new LaunchFailure({ code: "launch-failed", message: words, remedy: null }, { retryable });
  }

  get #pollMs(): number {
    return this.#host.pollMs ?? 1_000;
  }

  async remove(containerId: string, graceMs: number, signal: AbortSignal): Promise<void> {
    await this.#removeNow(await this.#cluster(), containerId, graceMs, signal);
  }

  /** Returns once it is gone: its devices are free only then. */
  async #removeNow(cluster: FleetCluster, name: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const pod = await cluster.pod(name, signal);
    if (pod === null) return;
    if (pod.metadata.labels?.[labels.fleet] !== this.#host.fleet)
      throw this.#failed(`pod ${name} is not of this fleet and is left alone`, false);
    await cluster.deletePod(name, graceMs, signal);
    for (const begun = Date.now(); Date.now() - begun < graceMs + goneMs; ) {
      if ((await cluster.pod(name, signal)) === null) return;
      await pause(this.#pollMs, signal);
    }
    throw this.#failed(`pod ${name} is still there ${(graceMs + goneMs) / 1_000} s after it was deleted`, true);
  }

  /** What it saved lies on the operator's claim or folder, as on a Docker host's folder: it stays. */
  async forgetRun(): Promise<void> {}

  async *logs(containerId: string, options: LogOptions, signal: AbortSignal): AsyncGenerator<string> {
    yield* (await this.#cluster()).log(containerId, options, signal);
  }
}

/** Null for one whose labels are not a worker's. */
function seenWorker(pod: Pod): SeenWorker | null {
  const own = pod.metadata.labels ?? {};
  const workerId = own[labels.worker];
  const claim = Number(own[labels.claim]);
  if (workerId === undefined || !Number.isSafeInteger(claim)) return null;
  const devices = (pod.metadata.annotations?.[devicesAnnotation] ?? "").split(",").filter((id) => id !== "");
  return { containerId: pod.metadata.name, workerId, claim, devices, ...podState(pod, workerPort) };
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
