/** Makes and starts a container. Invariant: one that does not get to its end is removed, also when its maker was told to stop. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { unlessAborted } from "../shared/waiting.ts";
import { closeBeside } from "./beside.ts";
import type { BesideScene } from "./beside-container.ts";
import { containerOptions, type ImageFacts } from "./container-options.ts";
import { containerMs, daemonTrouble, heard, refused, statusOf } from "./daemon-trouble.ts";
import { nameLoopback, namesLoopback } from "./name-loopback.ts";
import { type NetworkPart, networkPart } from "./network.ts";

const maxRemembered = 1_000;

export interface MadeContainer {
  readonly containerId: string;
  readonly labels: Readonly<Record<string, string>>;
}

export class ContainerMaker {
  readonly #docker: Docker;
  readonly #beside: BesideScene;
  /** Whether the storage driver has quotas; unknown until it was asked for one. */
  #diskQuota = true;
  /** Images without names for the loopback, by id: containers without a network are given none by the daemon. */
  readonly #hasHosts = new Map<string, boolean>();

  constructor(beside: BesideScene) {
    this.#docker = beside.docker;
    this.#beside = beside;
  }

  /** @throws BoundaryError("sandbox"), or the signal's reason */
  async make(spec: SandboxSpec, image: ImageFacts, signal: AbortSignal): Promise<MadeContainer> {
    const making = this.#make(spec, image, signal);
    try {
      return await unlessAborted(making, signal);
    } catch (error) {
      // It may still be on its way: removed as soon as it is there.
      if (signal.aborted) {
        making
          .then(({ containerId }) => this.#drop(containerId))
          .then(() => this.#dropBeside(spec.id))
          .catch(() => undefined);
      }
      throw error;
    }
  }

  async #make(spec: SandboxSpec, image: ImageFacts, signal: AbortSignal): Promise<MadeContainer> {
    const network = await networkPart(this.#beside, spec, signal);
    let container: Docker.Container;
    try {
      container = await this.#create(spec, image, network);
    } catch (error) {
      await this.#dropBeside(spec.id);
      throw error;
    }
    try {
      signal.throwIfAborted();
      if (network.disabled) await this.#nameLoopback(container, image.id);
      signal.throwIfAborted();
      await heard(`opening sandbox ${spec.id}`, container.start(), { limitMs: containerMs });
    } catch (error) {
      await this.#drop(container.id);
      await this.#dropBeside(spec.id);
      throw signal.aborted ? signal.reason : startTrouble(error, spec);
    }
    const options = containerOptions(spec, image, this.#scene(network));
    return { containerId: container.id, labels: options.Labels ?? {} };
  }

  #scene(network: NetworkPart) {
    const { deployment, owner } = this.#beside;
    return { deployment, owner, network, diskQuota: this.#diskQuota };
  }

  async #create(spec: SandboxSpec, image: ImageFacts, network: NetworkPart): Promise<Docker.Container> {
    const scene = this.#scene(network);
    try {
      const creating = this.#docker.createContainer(containerOptions(spec, image, scene));
      const late = (container: Docker.Container): void => void this.#drop(container.id);
      return await heard(`opening sandbox ${spec.id}`, creating, { limitMs: containerMs, late });
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (scene.diskQuota && /storage-opt|storage opt|quota/i.test(text)) {
        this.#diskQuota = false;
        return this.#create(spec, image, network);
      }
      if (statusOf(error) === 409) {
        throw new BoundaryError("sandbox", "refused", `there is a sandbox ${spec.id} already`, { cause: error });
      }
      throw daemonTrouble(error, `opening sandbox ${spec.id}`);
    }
  }

  async #nameLoopback(container: Docker.Container, image: string): Promise<void> {
    let named = this.#hasHosts.get(image);
    if (named === undefined) {
      named = await namesLoopback(container);
      if (this.#hasHosts.size >= maxRemembered) this.#hasHosts.clear();
      this.#hasHosts.set(image, named);
    }
    if (!named) await nameLoopback(container);
  }

  /** What can't be removed now goes with the next sweep. */
  async #dropBeside(id: string): Promise<void> {
    await closeBeside(this.#docker, id).catch(() => undefined);
  }

  async #drop(containerId: string): Promise<void> {
    // What can't be removed now is removed as a leftover.
    const removal = this.#docker.getContainer(containerId).remove({ force: true, v: true });
    await heard("dropping a sandbox", removal, { limitMs: containerMs }).catch(() => undefined);
  }
}

function startTrouble(error: unknown, spec: SandboxSpec): BoundaryError {
  const text = error instanceof Error ? error.message : String(error);
  if (/"\/bin\/sh"/.test(text) && /no such file|not found/.test(text)) {
    return refused(`the image of sandbox ${spec.id} has no /bin/sh: tools act through it`);
  }
  if (
    /OCI runtime create failed|unable to find user|failed to create shim/.test(text) &&
    !/resource temporarily|cannot allocate/.test(text)
  ) {
    return new BoundaryError("sandbox", "refused", `sandbox ${spec.id} can't be started: ${text}`, { cause: error });
  }
  return daemonTrouble(error, `opening sandbox ${spec.id}`);
}
