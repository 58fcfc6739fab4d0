/**
 * Sandboxes as pods of one namespace. Invariants: only pods with this deployment's label are seen or ended; no pod is opened before the
 * namespace has its policies; one whose opening failed is deleted.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import {
  type ImageSource,
  type Sandbox,
  type SandboxFact,
  type SandboxRuntime,
  type SandboxSpec,
  sandboxIdPattern,
} from "@rolldeck/contracts/ports/sandbox";
import { sandboxGone } from "../shared/sandbox-gone.ts";
import { pause, unlessAborted } from "../shared/waiting.ts";
import type { Cluster, PodFacts } from "./cluster.ts";
import { leaseAnnotation } from "./keeper.ts";
import { KubernetesSandbox } from "./kubernetes-sandbox.ts";
import { kubernetesIsolation, kubernetesLimits } from "./limits.ts";
import { policies } from "./network-policies.ts";
import { imageName, labelPrefix, labelValue, mainContainer, managedBy, podName, podOf } from "./pod-spec.ts";
import { pullTroubleOf, startTroubleOf } from "./pod-trouble.ts";
import { pullImage } from "./pull-image.ts";

export interface KubernetesRuntimeOptions {
  readonly cluster: Cluster;
  readonly deployment: string;
  /** Milliseconds of the wall clock. */
  readonly now: () => number;
  readonly onTrouble: (message: string, error: unknown) => void;
}

const pollMs = 200;
const renewMs = 20_000;
/** Pods that wait for an image or a node: after this the opening has failed. */
const readyMs = 600_000;
/** A server that is busy for a moment costs no sandbox. */
const renewTries = 3;
const renewAgainMs = 1_000;

export class KubernetesRuntime implements SandboxRuntime {
  readonly name = "kubernetes";
  readonly isolation = kubernetesIsolation;
  readonly limits = kubernetesLimits;
  readonly #options: KubernetesRuntimeOptions;
  #prepared: Promise<void> | null = null;

  constructor(options: KubernetesRuntimeOptions) {
    this.#options = options;
  }

  async ailment(signal: AbortSignal): Promise<string | null> {
    try {
      await this.#options.cluster.version(signal);
      await this.#namespaceReady(signal);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async prepare(image: ImageSource, onProgress: (message: string) => void, signal: AbortSignal): Promise<void> {
    const { cluster, now, onTrouble } = this.#options;
    await pullImage({ cluster, now, onTrouble, labels: this.#own() }, imageName(image), onProgress, signal);
  }

  async open(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const { cluster, deployment, now } = this.#options;
    if (!sandboxIdPattern.test(spec.id)) {
      throw new BoundaryError("sandbox", "refused", `${JSON.stringify(spec.id.slice(0, 60))} is no sandbox's id`);
    }
    const pod = podOf(spec, deployment, Math.floor(now() / 1000));
    await this.#namespaceReady(signal);
    signal.throwIfAborted();
    // Not broken off: a pod that comes up after all would be nobody's.
    const making = cluster.createPod(pod, AbortSignal.timeout(renewMs));
    try {
      await unlessAborted(making, signal);
      return await this.#sandboxOf(spec.id, await this.#running(spec, signal), signal);
    } catch (error) {
      await this.#drop(spec.id, making);
      throw error;
    }
  }

  /** What could not be made is somebody else's, where there is one of that name. */
  async #drop(id: string, making: Promise<unknown>): Promise<void> {
    try {
      await making;
    } catch {
      return;
    }
    await this.#options.cluster.deletePod(podName(id), AbortSignal.timeout(renewMs)).catch((trouble: unknown) => {
      this.#options.onTrouble(`pod ${podName(id)} was not deleted`, trouble);
    });
  }

  async attach(id: string, signal: AbortSignal): Promise<Sandbox> {
    const pod = await this.#options.cluster.pod(podName(id), signal);
    if (pod === null || !this.#isOwn(pod) || !isRunning(pod)) throw sandboxGone(id);
    return this.#sandboxOf(id, pod, signal);
  }

  async renew(ids: readonly string[], leaseMs: number, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const until = Math.ceil((this.#options.now() + leaseMs) / 1000);
    const running = new Set((await this.#pods(signal)).filter(isRunning).map(idOf));
    const renewed = new Set<string>();
    const waiting = ids.filter((id) => running.has(id));
    const lane = async (): Promise<void> => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        if (await this.#renewOne(id, until, signal)) renewed.add(id);
      }
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    return renewed;
  }

  async close(id: string, signal: AbortSignal): Promise<void> {
    const pod = await this.#options.cluster.pod(podName(id), signal);
    if (pod !== null && this.#isOwn(pod)) await this.#options.cluster.deletePod(podName(id), signal);
  }

  /** Pods that ended hold nothing but their names: they are deleted on the way. */
  async list(signal: AbortSignal): Promise<readonly SandboxFact[]> {
    const pods = await this.#pods(signal);
    const over = pods.filter(isOver);
    await Promise.all(over.map((pod) => this.#options.cluster.deletePod(pod.metadata.name, signal)));
    return pods
      .filter((pod) => !isOver(pod))
      .map((pod) => ({
        id: idOf(pod),
        labels: labelsOf(pod),
        state: "running",
        createdAtMs: pod.metadata.creationTimestamp.getTime(),
      }));
  }

  async disconnect(): Promise<void> {
    // Connections are made for each call.
  }

  #pods(signal: AbortSignal): Promise<PodFacts[]> {
    return this.#options.cluster.pods(this.#own(), signal);
  }

  #own(): Record<string, string> {
    return { ...managedBy, [`${labelPrefix}deployment`]: labelValue(this.#options.deployment) };
  }

  #isOwn(pod: PodFacts): boolean {
    return Object.entries(this.#own()).every(([name, value]) => pod.metadata.labels[name] === value);
  }

  /** Once per process, also when the one who asked first goes; a failure is tried again by the next who asks. */
  #namespaceReady(signal: AbortSignal): Promise<void> {
    this.#prepared ??= (async () => {
      const nobodys = new AbortController().signal;
      for (const policy of policies()) await this.#options.cluster.ensurePolicy(policy, nobodys);
    })().catch((error: unknown) => {
      this.#prepared = null;
      throw error;
    });
    return unlessAborted(this.#prepared, signal);
  }

  async #running(spec: SandboxSpec, signal: AbortSignal): Promise<PodFacts> {
    const endAt = this.#options.now() + readyMs;
    while (this.#options.now() < endAt) {
      const pod = await this.#options.cluster.pod(podName(spec.id), signal);
      if (pod === null) throw sandboxGone(spec.id);
      const trouble = troubleOf(pod);
      if (trouble !== null) throw trouble;
      const containers = pod.status?.containerStatuses ?? [];
      if (isRunning(pod) && containers.length > 0 && containers.every(({ ready }) => ready)) return pod;
      await pause(pollMs, signal);
      signal.throwIfAborted();
    }
    throw new BoundaryError("sandbox", "full", `no node took a pod in ${readyMs / 1000} s`, { retryable: true });
  }

  /** What the image alone knows, the pod is asked: its folder where the pod names none, and its user. */
  async #sandboxOf(id: string, pod: PodFacts, signal: AbortSignal): Promise<Sandbox> {
    const { cluster } = this.#options;
    const main = pod.spec.containers.find(({ name }) => name === mainContainer);
    const options = {
      id,
      target: { config: cluster.config, namespace: cluster.namespace, pod: podName(id), container: mainContainer },
      isRunning: async () => {
        const now = await cluster.pod(podName(id), AbortSignal.timeout(renewMs));
        return now !== null && isRunning(now);
      },
    };
    const probe = new KubernetesSandbox({ ...options, workdir: "/", users: [] });
    const command = ["/bin/sh", "-c", "id -u; id -un 2>/dev/null || echo; pwd"];
    const { stdout } = await probe.exec({ command, timeoutMs: renewMs }, signal);
    const [uid = "", name = "", ...folder] = Buffer.from(stdout.head).toString("utf8").split("\n");
    const found = folder.join("\n").replace(/\n$/, "");
    const workdir = main?.workingDir || (found.startsWith("/") ? found : "/");
    return new KubernetesSandbox({ ...options, workdir, users: [uid, name].filter(Boolean) });
  }

  /** False where it is not there, and where it could not be renewed: that is told, and it ends with the lease it has. */
  async #renewOne(id: string, until: number, signal: AbortSignal): Promise<boolean> {
    const { cluster, onTrouble } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        const pod = await cluster.annotatePod(podName(id), { [leaseAnnotation]: String(until) }, signal);
        return pod !== null && isRunning(pod);
      } catch (error) {
        signal.throwIfAborted();
        const again = error instanceof BoundaryError && error.retryable && tries < renewTries;
        if (!again) {
          onTrouble(`the lease of sandbox ${id} was not renewed`, error);
          return false;
        }
      }
      await pause(renewAgainMs, signal);
    }
  }
}

/** The keeper ended: services beside it would keep the pod's phase at `Running`. */
const keeperEnded = (pod: PodFacts): boolean =>
  (pod.status?.containerStatuses ?? []).some(({ name, state }) => name === mainContainer && Boolean(state?.terminated));
const isRunning = (pod: PodFacts): boolean =>
  pod.status?.phase === "Running" && !pod.metadata.deletionTimestamp && !keeperEnded(pod);
const isOver = (pod: PodFacts): boolean =>
  pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed" || keeperEnded(pod);
const idOf = (pod: PodFacts): string => pod.metadata.labels[`${labelPrefix}sandbox`] ?? "";

function labelsOf(pod: PodFacts): Record<string, string> {
  const start = `${labelPrefix}label-`;
  const told = Object.entries(pod.metadata.annotations ?? {}).filter(([name]) => name.startsWith(start));
  return Object.fromEntries(told.map(([name, value]) => [name.slice(start.length), value]));
}

/** Why it will never come up; null while it may. */
function troubleOf(pod: PodFacts): BoundaryError | null {
  const { phase, reason, message } = pod.status ?? {};
  if (isOver(pod)) {
    return new BoundaryError(
      "sandbox",
      "gone",
      `the pod ended while it was opened: ${reason ?? phase} ${message ?? ""}`,
    );
  }
  return pullTroubleOf(pod) ?? startTroubleOf(pod);
}
