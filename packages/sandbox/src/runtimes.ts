/**
 * The runtimes of this process, each made when it is first asked for. Adding one: its folder and an entry here. A runtime that is
 * not configured is said, never replaced by another.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import type { SandboxRuntimeName } from "@rolldeck/contracts/run-config";
import { DockerRuntime } from "./docker/docker-runtime.ts";
import { LazyKubernetes } from "./kubernetes/lazy-kubernetes.ts";
import { ProcessRuntime } from "./process/process-runtime.ts";
import { makeRemoteRuntime } from "./remote/make-remote-runtime.ts";
import type { RuntimeScene } from "./runtime-scene.ts";

export type { RuntimeScene };

type Make = (scene: RuntimeScene) => SandboxRuntime;

const makers: Readonly<Partial<Record<SandboxRuntimeName, Make>>> = {
  docker: (scene) => new DockerRuntime(scene),
  kubernetes: ({ settings, deployment, onTrouble }) => {
    if (settings.kubernetes === null) throw new BoundaryError("sandbox", "no_runtime", "no cluster is configured");
    return new LazyKubernetes({ ...settings.kubernetes, deployment, onTrouble });
  },
  process: (scene) => new ProcessRuntime(scene),
  remote: makeRemoteRuntime,
};

export class SandboxRuntimes {
  readonly #scene: RuntimeScene;
  readonly #made = new Map<SandboxRuntimeName, SandboxRuntime>();

  constructor(scene: RuntimeScene) {
    this.#scene = scene;
  }

  /** Names that `get` has a runtime for here. */
  names(): SandboxRuntimeName[] {
    const { settings } = this.#scene;
    const names: SandboxRuntimeName[] = ["docker", "process"];
    if (settings.remote !== null) names.push("remote");
    if (settings.kubernetes !== null) names.push("kubernetes");
    return names;
  }

  /** @throws BoundaryError("sandbox", "no_runtime") that says what is not configured */
  get(name: SandboxRuntimeName): SandboxRuntime {
    const known = this.#made.get(name);
    if (known !== undefined) return known;
    const make = makers[name];
    if (make === undefined || !this.names().includes(name)) {
      throw new BoundaryError("sandbox", "no_runtime", `this server has no ${name} sandboxes: they are not configured`);
    }
    const runtime = make(this.#scene);
    this.#made.set(name, runtime);
    return runtime;
  }

  /** Those made so far. */
  made(): readonly SandboxRuntime[] {
    return [...this.#made.values()];
  }

  async disconnect(): Promise<void> {
    await Promise.all(this.made().map((runtime) => runtime.disconnect()));
  }
}
