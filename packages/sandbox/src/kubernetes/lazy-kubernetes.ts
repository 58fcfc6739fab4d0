/** The Kubernetes runtime, loaded when it is first used: its client is larger than all the rest of a process. */
import { readFile } from "node:fs/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ImageSource, SandboxRuntime, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type { KubernetesRuntime } from "./kubernetes-runtime.ts";
import { kubernetesIsolation, kubernetesLimits } from "./limits.ts";

export interface KubernetesPlace {
  /** Path of the file. */
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly deployment: string;
  readonly onTrouble: (message: string, error: unknown) => void;
}

export class LazyKubernetes implements SandboxRuntime {
  readonly name = "kubernetes";
  readonly isolation = kubernetesIsolation;
  readonly limits = kubernetesLimits;
  readonly #place: KubernetesPlace;
  #opened: Promise<KubernetesRuntime> | null = null;

  constructor(place: KubernetesPlace) {
    this.#place = place;
  }

  async ailment(signal: AbortSignal): Promise<string | null> {
    try {
      return await (await this.#runtime()).ailment(signal);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async prepare(image: ImageSource, onProgress: (message: string) => void, signal: AbortSignal): Promise<void> {
    await (await this.#runtime()).prepare(image, onProgress, signal);
  }

  open = async (spec: SandboxSpec, signal: AbortSignal) => (await this.#runtime()).open(spec, signal);
  attach = async (id: string, signal: AbortSignal) => (await this.#runtime()).attach(id, signal);
  close = async (id: string, signal: AbortSignal) => (await this.#runtime()).close(id, signal);
  list = async (signal: AbortSignal) => (await this.#runtime()).list(signal);
  renew = async (ids: readonly string[], leaseMs: number, signal: AbortSignal) =>
    (await this.#runtime()).renew(ids, leaseMs, signal);

  async disconnect(): Promise<void> {
    await (await this.#opened?.catch(() => null))?.disconnect();
  }

  /** A file that can't be read or parsed is told, and read again by the next who asks. */
  #runtime(): Promise<KubernetesRuntime> {
    this.#opened ??= this.#open().catch((cause: unknown) => {
      this.#opened = null;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new BoundaryError("sandbox", "unavailable", `the kubeconfig can't be used: ${why}`, { cause });
    });
    return this.#opened;
  }

  async #open(): Promise<KubernetesRuntime> {
    const { kubeconfig, namespace, deployment, onTrouble } = this.#place;
    const [{ Cluster }, { KubernetesRuntime: Runtime }, text] = await Promise.all([
      import("./cluster.ts"),
      import("./kubernetes-runtime.ts"),
      readFile(kubeconfig, "utf8"),
    ]);
    return new Runtime({ cluster: new Cluster(text, namespace), deployment, now: () => Date.now(), onTrouble });
  }
}
