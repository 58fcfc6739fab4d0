/** One container as a sandbox. Holds no state of its own: any process that knows its name has the same view of it. */
import type { ExecRequest, ExecResult, Sandbox, SandboxProcess, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";
import { FilesByExec } from "../shared/files-by-exec.ts";
import { unlessAborted } from "../shared/waiting.ts";
import type { ContainerScene } from "./container-scene.ts";
import { asked } from "./daemon-trouble.ts";
import { execCommand } from "./exec-command.ts";
import { killProcesses } from "./kill-processes.ts";
import { spawnCommand } from "./spawn-command.ts";

export class DockerSandbox implements Sandbox {
  readonly runtime = "docker";
  readonly #scene: ContainerScene;
  readonly #files: FilesByExec;

  constructor(scene: ContainerScene) {
    this.#scene = scene;
    this.#files = new FilesByExec(this);
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

  readFile(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array> {
    return this.#files.readFile(path, options, signal);
  }

  writeFile(
    path: string,
    bytes: Uint8Array,
    options: { readonly mode?: number; readonly user?: string },
    signal: AbortSignal,
  ): Promise<void> {
    return this.#files.writeFile(path, bytes, options, signal);
  }

  putArchive(
    path: string,
    tar: Uint8Array | AsyncIterable<Uint8Array>,
    options: { readonly user?: string },
    signal: AbortSignal,
  ): Promise<void> {
    return this.#files.putArchive(path, tar, options, signal);
  }

  getArchive(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array> {
    return this.#files.getArchive(path, options, signal);
  }

  /** Its memory file systems and processes are no part of it. Whoever asked removes the image. */
  async snapshot(signal: AbortSignal): Promise<string> {
    const { container, id, user } = this.#scene;
    const tag = `${id.slice(4)}-${Date.now().toString(36)}`;
    // The image takes after the container, whose program and user are the keeper's.
    const changes = [`USER ${user}`, "ENTRYPOINT []", "CMD []"];
    await unlessAborted(
      asked("keeping a sandbox as an image", container.commit({ repo: "rolldeck-snapshot", tag, changes })),
      signal,
    );
    return `rolldeck-snapshot:${tag}`;
  }
}
