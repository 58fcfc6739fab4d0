/** One container as a sandbox. Holds nothing but which one it is: any process that knows its name has the same view of it. */
import type { ExecRequest, ExecResult, Sandbox, SandboxProcess, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";
import { FilesByExec } from "../shared/files-by-exec.ts";
import { unlessAborted } from "../shared/waiting.ts";
import type { ContainerScene } from "./container-scene.ts";
import { asked } from "./daemon-trouble.ts";
import { execCommand } from "./exec-command.ts";
import { imageLabels, snapshotRepository } from "./kept-images.ts";
import { killProcesses } from "./kill-processes.ts";
import { remakeContainer } from "./remake-container.ts";
import { spawnCommand } from "./spawn-command.ts";

/** Of many gigabytes, on a slow disk. */
const commitMs = 900_000;

export class DockerSandbox extends FilesByExec implements Sandbox {
  readonly runtime = "docker";
  #scene: ContainerScene;

  constructor(scene: ContainerScene) {
    super();
    this.#scene = scene;
  }

  get id(): string {
    return this.#scene.id;
  }

  get workdir(): string {
    return this.#scene.workdir;
  }

  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return execCommand(this.#scene, request, signal);
  }

  spawn(request: SpawnRequest, signal: AbortSignal): Promise<SandboxProcess> {
    return spawnCommand(this.#scene, request, signal);
  }

  killAll(signal: AbortSignal, user?: string): Promise<void> {
    return unlessAborted(killProcesses(this.#scene, user ?? this.#scene.user), signal);
  }

  /** A new container of its image takes the old one's place, with its name, bounds and network. */
  async reset(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const container = await unlessAborted(remakeContainer(this.#scene, signal), signal);
    this.#scene = { ...this.#scene, container };
  }

  /** Its memory file systems and processes are no part of it. It stays while the sandbox does, and then as long as it is used. */
  async snapshot(signal: AbortSignal): Promise<string> {
    const { container, deployment, id, user } = this.#scene;
    const tag = `${id.slice(4)}-${Date.now().toString(36)}`;
    // The image takes after the container, whose program and user are the keeper's.
    const named = Object.entries(imageLabels(deployment)).map(([name, value]) => `LABEL "${name}"="${value}"`);
    const changes = [`USER ${user}`, "ENTRYPOINT []", "CMD []", ...named];
    await unlessAborted(
      asked("keeping a sandbox as an image", container.commit({ repo: snapshotRepository, tag, changes }), {
        limitMs: commitMs,
      }),
      signal,
    );
    return `${snapshotRepository}:${tag}`;
  }
}
