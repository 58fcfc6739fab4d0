/**
 * GPU workers as Docker containers of one host. Invariants: a launch that fails leaves no container; what belongs to another fleet is
 * not seen and not touched; a GPU is asked for only where Docker can give one.
 */
import type { DockerEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { HostFacts, LaunchSpec, LogOptions, SeenWorker, WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import type Docker from "dockerode";
import { LaunchFailure } from "../launch-failure.ts";
import { gpuRuntimeRemedy } from "../plan/reasons.ts";
import { ContainerAnswer, ImageAnswer, ListAnswer } from "./answers.ts";
import { connectDocker, connectionRemedy } from "./connect-docker.ts";
import { containerBody, containerName, labels, volumeName, workerPort } from "./container-body.ts";
import { type AskedHost, answerMs, asked, containerMs, daemonFailure, statusOf, understood } from "./daemon-words.ts";
import { ensureNetwork } from "./fleet-network.ts";
import { gpuRuntimeOf, readFacts, readInfo } from "./read-facts.ts";
import { FramedLines, readFrames } from "./read-frames.ts";

export interface DockerHost {
  readonly name: string;
  readonly endpoint: DockerEndpoint;
  /** Which workers are ours: the id of the deployment. */
  readonly fleet: string;
  /** Image that looks for GPUs: the workers' own. */
  readonly image: string;
}

export class DockerLauncher implements WorkerLauncher {
  readonly #host: DockerHost;
  readonly #asked: AskedHost;
  #client: Docker | null = null;

  constructor(host: DockerHost) {
    this.#host = host;
    this.#asked = { name: host.name, remedy: connectionRemedy(host.endpoint) };
  }

  /** Made when it is needed: certificates may be put right while the server runs. */
  get #docker(): Docker {
    this.#client ??= connectDocker(this.#host.endpoint);
    return this.#client;
  }

  async facts(signal: AbortSignal): Promise<HostFacts> {
    const { fleet, image } = this.#host;
    return readFacts({ docker: this.#docker, host: this.#asked, fleet, image }, signal);
  }

  async seen(signal: AbortSignal): Promise<SeenWorker[]> {
    const what = "listing workers";
    const filters = { label: [`${labels.fleet}=${this.#host.fleet}`, `${labels.role}=gpu-worker`] };
    const answer = await asked(this.#asked, what, this.#docker.listContainers({ all: true, filters }), signal);
    const listed = understood(this.#asked, what, ListAnswer, answer);
    const seen = await Promise.all(listed.map(({ Id }) => this.#look(Id, signal)));
    return seen.filter((one) => one !== null);
  }

  async #look(containerId: string, signal: AbortSignal): Promise<SeenWorker | null> {
    const container = this.#docker.getContainer(containerId);
    const inspection = container.inspect().catch((error: unknown) => {
      if (statusOf(error) === 404) return null;
      throw error;
    });
    const what = "looking at a worker";
    const answer = await asked(this.#asked, what, inspection, signal);
    return answer === null ? null : seenWorker(understood(this.#asked, what, ContainerAnswer, answer));
  }

  async launch(spec: LaunchSpec, signal: AbortSignal): Promise<{ readonly containerId: string; readonly url: string }> {
    return this.launchWith(spec, spec.device === "gpu" ? await this.#needGpuRuntime(signal) : null, signal);
  }

  /** As `launch`, by what is known of the host already. @param runtime how it gives containers GPUs */
  async launchWith(
    spec: LaunchSpec,
    runtime: "nvidia" | "cdi" | null,
    signal: AbortSignal,
  ): Promise<{ readonly containerId: string; readonly url: string }> {
    const { fleet } = this.#host;
    const what = `starting worker ${spec.workerId}`;
    await this.#checkImage(spec.image, signal);
    const network = await ensureNetwork({ docker: this.#docker, host: this.#asked, fleet }, signal);
    // A launch of the same placement that was cut off half-way.
    await this.#removeNow(containerName(spec));
    const body = containerBody(spec, { fleet, network, gpuRuntime: runtime });
    try {
      const container = await asked(this.#asked, what, this.#docker.createContainer(body), signal, containerMs);
      await asked(this.#asked, what, container.start(), signal, containerMs);
      const seen = await this.#look(container.id, signal);
      if (seen?.url) return { containerId: container.id, url: seen.url };
      throw new Error(`the container ended at once${seen?.exitCode == null ? "" : ` with ${seen.exitCode}`}`);
    } catch (error) {
      await this.#removeNow(containerName(spec)).catch(() => undefined);
      signal.throwIfAborted();
      throw daemonFailure(this.#asked, what, error);
    }
  }

  /** @throws LaunchFailure no-gpu-runtime: before anything was made */
  async #needGpuRuntime(signal: AbortSignal): Promise<"nvidia" | "cdi"> {
    const runtime = gpuRuntimeOf(await readInfo(this.#docker, this.#asked, signal));
    if (runtime !== null) return runtime;
    const { name } = this.#host;
    const message = `needs a GPU; Docker can give containers none on ${name}`;
    throw new LaunchFailure({ code: "no-gpu-runtime", message, remedy: gpuRuntimeRemedy(name) });
  }

  async #checkImage(image: string, signal: AbortSignal): Promise<void> {
    const { name } = this.#host;
    const inspection = this.#docker.getImage(image).inspect();
    const what = `looking for image ${image}`;
    const found = understood(this.#asked, what, ImageAnswer, await asked(this.#asked, what, inspection, signal));
    const user = (found.Config?.User ?? "").split(":")[0];
    if (user !== "" && user !== "0" && user !== "root") return;
    throw new LaunchFailure({
      code: "root-image",
      message: `image ${image} on ${name} runs as root`,
      remedy: "build it from infra/docker/gpu-worker.Dockerfile, or give it a USER",
    });
  }

  async remove(containerId: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const container = this.#docker.getContainer(containerId);
    const stopping = container.stop({ t: Math.ceil(graceMs / 1_000) }).catch((error: unknown) => {
      // Gone, or ended already.
      if (statusOf(error) !== 404 && statusOf(error) !== 304) throw error;
    });
    await asked(this.#asked, "ending a worker", stopping, signal, graceMs + containerMs);
    await this.#removeNow(containerId);
  }

  async #removeNow(nameOrId: string): Promise<void> {
    const removal = this.#docker
      .getContainer(nameOrId)
      // Its anonymous volumes go with it; those of runs have names.
      .remove({ force: true, v: true })
      .catch((error: unknown) => {
        if (statusOf(error) !== 404 && !/already in progress/.test(String(error))) throw error;
      });
    await asked(this.#asked, "removing a worker", removal, AbortSignal.timeout(containerMs), containerMs);
  }

  async forgetRun(runId: string, signal: AbortSignal): Promise<void> {
    const volume = this.#docker.getVolume(volumeName(this.#host.fleet, runId));
    const removal = volume.remove().catch((error: unknown) => {
      if (statusOf(error) !== 404) throw error;
    });
    await asked(this.#asked, `removing what run ${runId} saved`, removal, signal);
  }

  async *logs(containerId: string, options: LogOptions, signal: AbortSignal): AsyncGenerator<string> {
    const container = this.#docker.getContainer(containerId);
    const wanted = { stdout: true, stderr: true, timestamps: true, tail: options.tail };
    const what = "reading a worker's log";
    if (!options.follow) {
      yield* readFrames(await asked(this.#asked, what, container.logs({ ...wanted, follow: false }), signal));
      return;
    }
    const stream = await asked(this.#asked, what, container.logs({ ...wanted, follow: true }), signal, answerMs);
    const end = (): void => void ("destroy" in stream && typeof stream.destroy === "function" && stream.destroy());
    signal.addEventListener("abort", end, { once: true });
    const lines = new FramedLines();
    try {
      for await (const piece of stream) yield* lines.push(typeof piece === "string" ? Buffer.from(piece) : piece);
      yield* lines.end();
    } catch (error) {
      if (!signal.aborted) throw daemonFailure(this.#asked, what, error);
    } finally {
      signal.removeEventListener("abort", end);
      end();
    }
  }
}

/** Null for one whose labels are not a worker's. */
function seenWorker(answer: ContainerAnswer): SeenWorker | null {
  const own = answer.Config.Labels ?? {};
  const workerId = own[labels.worker];
  const claim = Number(own[labels.claim]);
  if (workerId === undefined || !Number.isSafeInteger(claim)) return null;
  const { Status, Running, ExitCode, OOMKilled } = answer.State;
  const published = answer.NetworkSettings.Ports?.[`${workerPort}/tcp`]?.[0];
  const ended = !Running && Status !== "created";
  return {
    containerId: answer.Id,
    workerId,
    claim,
    devices: (own[labels.devices] ?? "").split(",").filter((id) => id !== ""),
    state: Running ? "running" : ended ? "ended" : "created",
    url: Running && published ? `http://${hostPart(published.HostIp)}:${published.HostPort}` : null,
    exitCode: ended ? (ExitCode ?? null) : null,
    outOfMemory: OOMKilled ?? false,
  };
}

const hostPart = (address: string): string => (address.includes(":") ? `[${address}]` : address);
