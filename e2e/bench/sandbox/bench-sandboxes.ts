/** Runtimes and sandboxes as the benchmark makes them. Its own deployment each time: nothing else on the machine is touched. */
import { randomInt } from "node:crypto";
import { noResources, type Sandbox, type SandboxRuntime, type SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type { ToolContext } from "@rolldeck/contracts/ports/tool";
import { DockerRuntime } from "@rolldeck/sandbox/docker/docker-runtime";
import { ProcessRuntime } from "@rolldeck/sandbox/process/process-runtime";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { testImage } from "@rolldeck/sandbox/testing/test-docker";
import { bash } from "@rolldeck/tools/bash/bash";

export const forever = new AbortController().signal;

const letters = (count: number): string => Array.from({ length: count }, () => randomInt(36).toString(36)).join("");
export const newDeployment = (): string => `bench-${letters(10)}`;

const scene = (deployment: string, stateFolder: string, variables: Record<string, string>) => ({
  settings: parseSandboxSettings(variables, "/"),
  deployment,
  stateFolder,
  onTrouble: (message: string, error: unknown) => process.stderr.write(`${message}: ${String(error)}\n`),
});

export const dockerRuntime = (deployment: string, socket: string): SandboxRuntime =>
  new DockerRuntime(scene(deployment, "/nonexistent", { ROLLDECK_DOCKER_SOCKET: socket }));

export const processRuntime = (deployment: string, stateFolder: string): SandboxRuntime =>
  new ProcessRuntime(scene(deployment, stateFolder, {}));

export const benchSpec = (image: boolean, leaseMs = 600_000): SandboxSpec => ({
  id: `sbx_${letters(20)}`,
  image: image ? { kind: "name", name: testImage } : null,
  resources: { ...noResources, cpus: 1, memoryMb: 256, pids: 128 },
  network: { mode: "none" },
  workdir: null,
  environment: {},
  services: [],
  labels: { purpose: "bench" },
  mounts: [],
  leaseMs,
  maxLifeMs: Math.max(leaseMs, 1_200_000),
});

/** A shell as an agent has it: one object per rollout, so that its state is kept between calls. */
export function shellOf(sandbox: Sandbox): (command: string) => Promise<void> {
  const context: ToolContext = {
    instance: {},
    agent: { turn: 0, maxTurns: 50, contextTokens: 0, maxContextTokens: 1_000_000, calls: [] },
    rollout: {},
    sandbox,
    signal: forever,
    deadlineMs: Date.now() + 1_200_000,
  };
  return async (command) => {
    const { error } = await bash.call({ command }, context);
    if (error !== undefined) throw new Error(`the shell failed: ${error.message}`);
  };
}

export async function exec(sandbox: Sandbox, command: readonly string[]): Promise<void> {
  const { exitCode } = await sandbox.exec({ command, timeoutMs: 120_000 }, forever);
  if (exitCode !== 0) throw new Error(`${command.join(" ")} ended with ${exitCode}`);
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

export const rounded = (value: number): number => Math.round(value * 10) / 10;
