/**
 * Sandboxes as Docker containers. Invariants: a container that was not opened to its end is removed; one whose keepers are all
 * gone ends when its lease does; nothing of another deployment is touched; how many are made at a time is bounded, because the
 * daemon gets slower with every one more.
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
import Docker from "dockerode";
import type { RuntimeScene } from "../runtime-scene.ts";
import { sandboxGone } from "../shared/sandbox-gone.ts";
import { Places, Turns, unlessAborted, within } from "../shared/waiting.ts";
import { ContainerAnswer, InfoAnswer } from "./answers.ts";
import { closeBeside } from "./beside.ts";
import { ContainerMaker, type MadeContainer } from "./container-maker.ts";
import { containerName, defaultResources, labels, specLabels } from "./container-options.ts";
import { asked, daemonTrouble, heard, refused, statusOf } from "./daemon-trouble.ts";
import { DockerSandbox } from "./docker-sandbox.ts";
import { DockerImages } from "./images.ts";
import { KeptImages } from "./kept-images.ts";
import { leaseLine } from "./lease-keeper.ts";
import { Leftovers } from "./leftovers.ts";
import { listedSandboxes } from "./listed-sandboxes.ts";
import { OomWatch } from "./oom-watch.ts";
import { thisOwner } from "./owner.ts";
import { removeContainer } from "./remove-container.ts";

const createsAtOnce = 8;
const renewalsAtOnce = 16;
const answerMs = 10_000;
const removalMs = 30_000;

export class DockerRuntime implements SandboxRuntime {
  readonly name = "docker";
  readonly isolation = "container";
  readonly limits = [
    "disk: all of a sandbox only where the storage driver has quotas (overlay2 on xfs with pquota, btrfs, zfs); elsewhere each file, to diskMb",
    "/tmp is in memory and counts as such; half of the memory at most",
    "images with neither bash nor a shell that can wait (busybox has one): a sandbox's lease is its whole life",
    "services beside a sandbox have no lease of their own: when all of this is killed they stay until something of it runs again",
    "a public network is the machine's own bridge, with all that can be reached from there",
    "one with services beside it can't be reset: they keep what was done to them",
    "a snapshot holds neither memory file systems nor processes",
  ];
  readonly #docker: Docker;
  readonly #socket: string;
  readonly #deployment: string;
  readonly #images: DockerImages;
  readonly #maker: ContainerMaker;
  readonly #oom: OomWatch;
  readonly #leftovers: Leftovers;
  readonly #creating = new Places(createsAtOnce);
  readonly #renewing = new Places(renewalsAtOnce);
  readonly #onTrouble: RuntimeScene["onTrouble"];

  constructor(scene: RuntimeScene) {
    this.#socket = scene.settings.docker.socket;
    this.#deployment = scene.deployment;
    this.#onTrouble = scene.onTrouble;
    this.#docker = new Docker({ socketPath: this.#socket });
    const { egress, keepImagesMs, buildNetwork = "none" } = scene.settings.docker;
    const { deployment, onTrouble } = scene;
    const here = { docker: this.#docker, deployment };
    const kept = new KeptImages({ ...here, keepMs: keepImagesMs, now: () => Date.now() });
    this.#images = new DockerImages(this.#docker, { deployment, buildNetwork, kept });
    this.#maker = new ContainerMaker({ ...here, images: this.#images, owner: thisOwner(), egress });
    const close = (id: string) => this.close(id, AbortSignal.timeout(removalMs));
    this.#leftovers = new Leftovers({ ...here, images: kept, close, onTrouble });
    this.#oom = new OomWatch(this.#docker, `${labels.deployment}=${scene.deployment}`);
  }

  async ailment(signal: AbortSignal): Promise<string | null> {
    const where = `Docker at ${this.#socket}`;
    let answer: unknown;
    try {
      answer = await unlessAborted(within(this.#docker.info(), answerMs, where), signal);
    } catch (error) {
      signal.throwIfAborted();
      const code = typeof error === "object" && error !== null && "code" in error ? error.code : null;
      if (code === "EACCES") return `${where} may not be used by this account: add it to the group docker`;
      const advice = "start the daemon, or set ROLLDECK_DOCKER_SOCKET to the path of its socket";
      return `${where} does not answer (${error instanceof Error ? error.message : String(error)}): ${advice}`;
    }
    const info = InfoAnswer.parse(answer);
    if (info.OSType !== undefined && info.OSType !== "linux")
      return `${where} runs ${info.OSType} containers, not Linux`;
    if (info.MemoryLimit === false) return `${where} can't limit memory: its machine has no memory control group`;
    if (info.PidsLimit === false) return `${where} can't limit processes: its machine has no pids control group`;
    return null;
  }

  async prepare(image: ImageSource, onProgress: (message: string) => void, signal: AbortSignal): Promise<void> {
    await this.#images.ensure(image, onProgress, signal);
  }

  async open(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    signal.throwIfAborted();
    if (!sandboxIdPattern.test(spec.id)) throw refused(`${spec.id} is no name of a sandbox`);
    if (spec.image === null)
      throw refused(
        "a Docker sandbox needs an image, and the task names none: give it one, or run it with `sandbox.runtime: process`",
      );
    this.#leftovers.start();
    const [made] = await Promise.all([this.#make(spec, spec.image, signal), this.#oom.ready()]);
    return this.#sandbox(made);
  }

  async #make(spec: SandboxSpec, source: ImageSource, signal: AbortSignal): Promise<MadeContainer> {
    for (let tries = 1; ; tries += 1) {
      const image = await this.#images.ensure(source, () => undefined, signal);
      try {
        return await this.#creating.use(() => this.#maker.make(spec, image, signal), signal);
      } catch (error) {
        // It was there a moment ago: somebody removed it.
        if (tries > 1 || !(error instanceof BoundaryError) || error.code !== "no_image") throw error;
      }
    }
  }

  async attach(id: string, signal: AbortSignal): Promise<Sandbox> {
    const found = await unlessAborted(this.#find(id), signal);
    await this.#oom.ready();
    return this.#sandbox(found);
  }

  #sandbox(made: { readonly containerId: string; readonly labels: Readonly<Record<string, string>> }): Sandbox {
    return new DockerSandbox({
      docker: this.#docker,
      deployment: this.#deployment,
      container: this.#docker.getContainer(made.containerId),
      id: made.labels[labels.sandbox] ?? "",
      user: made.labels[labels.user] ?? "0:0",
      workdir: made.labels[labels.workdir] ?? "/",
      pids: Number(made.labels[labels.pids] ?? defaultResources.pids),
      oom: this.#oom,
      endings: new Turns(),
    });
  }

  /** @throws BoundaryError("sandbox", "gone") for one that ended or is not this deployment's */
  async #find(id: string): Promise<{ readonly containerId: string; readonly labels: Record<string, string> }> {
    let answer: unknown;
    try {
      const inspection = this.#docker.getContainer(containerName(id)).inspect();
      answer = await heard(`looking for sandbox ${id}`, inspection);
    } catch (error) {
      if (statusOf(error) === 404) throw sandboxGone(id, error);
      throw daemonTrouble(error, `looking for sandbox ${id}`);
    }
    const { Id, State, Config } = ContainerAnswer.parse(answer);
    const found = Config.Labels ?? {};
    if (!State.Running || found[labels.deployment] !== this.#deployment) throw sandboxGone(id);
    return { containerId: Id, labels: found };
  }

  async renew(ids: readonly string[], leaseMs: number, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const renewed = new Set<string>();
    await Promise.all(
      ids.map((id) =>
        this.#renewing.use(async () => {
          const there = await unlessAborted(this.#renewOne(id, leaseMs), signal).catch((error: unknown) => {
            signal.throwIfAborted();
            // One that does not answer is not known to be gone, and keeps no other from being renewed.
            this.#onTrouble(`the lease of sandbox ${id} was not renewed`, error);
            return true;
          });
          if (there) renewed.add(id);
        }, signal),
      ),
    );
    return renewed;
  }

  /** False where it is not there. */
  async #renewOne(id: string, leaseMs: number): Promise<boolean> {
    try {
      const { containerId } = await this.#find(id);
      const input = await asked(
        `renewing sandbox ${id}`,
        this.#docker.getContainer(containerId).attach({ stream: true, stdin: true, hijack: true }),
        { late: (late) => "destroy" in late && typeof late.destroy === "function" && late.destroy() },
      );
      await new Promise<void>((resolve, reject) => {
        const stop = setTimeout(() => {
          reject(new Error("socket hang up"));
          if ("destroy" in input && typeof input.destroy === "function") input.destroy();
        }, answerMs);
        input.on("error", reject).on("close", () => {
          clearTimeout(stop);
          resolve();
        });
        // The daemon passes the line on and then closes its side.
        input.end(leaseLine(leaseMs));
        input.resume();
      });
      return true;
    } catch (error) {
      const trouble = daemonTrouble(error, `renewing sandbox ${id}`);
      if (trouble.code === "gone") return false;
      throw trouble;
    }
  }

  async close(id: string, signal: AbortSignal): Promise<void> {
    await unlessAborted(removeContainer(this.#docker.getContainer(containerName(id))), signal);
    await unlessAborted(closeBeside(this.#docker, id), signal);
  }

  async list(signal: AbortSignal): Promise<readonly SandboxFact[]> {
    this.#leftovers.start();
    const listed = await unlessAborted(listedSandboxes(this.#docker, this.#deployment), signal);
    return listed.map((found) => ({
      id: found.id,
      labels: specLabels(found.labels),
      state: found.ended ? "ended" : "running",
      createdAtMs: found.createdAtMs,
    }));
  }

  async disconnect(): Promise<void> {
    this.#leftovers.stop();
    this.#oom.close();
  }
}
