/** The Docker runtime over the daemon of the tests, also for processes that a test starts and kills. */
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { DockerRuntime } from "../src/docker/docker-runtime.ts";
import { parseSandboxSettings } from "../src/settings.ts";
import { testDocker } from "./test-docker.ts";

export function makeRuntime(deployment: string): SandboxRuntime {
  const docker = testDocker();
  if (docker === null) throw new Error("there is no Docker daemon");
  return new DockerRuntime({
    settings: parseSandboxSettings({ ROLLDECK_DOCKER_SOCKET: docker.socket }, "/"),
    deployment,
    stateFolder: "/nonexistent",
    onTrouble: (message, error) => process.stderr.write(`${message}: ${String(error)}\n`),
  });
}
