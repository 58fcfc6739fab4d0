/**
 * Which GPUs a host has: a short container is given all of them and says what `nvidia-smi` says. Invariant: the container is gone
 * when this returns, however it returns.
 */
import type { GpuFact } from "@rolldeck/contracts/ports/fleet";
import type Docker from "dockerode";
import { EndAnswer, ListAnswer } from "./answers.ts";
import { labels } from "./container-body.ts";
import { type AskedHost, answerMs, asked, statusOf, understood } from "./daemon-words.ts";
import { readFrames } from "./read-frames.ts";

const probeMs = 60_000;
const probeRole = "probe";
export const gpuQuery = ["--query-gpu=index,uuid,memory.total,name", "--format=csv,noheader,nounits"];

export interface ProbeScene {
  readonly docker: Docker;
  readonly host: AskedHost;
  readonly fleet: string;
  readonly image: string;
  readonly gpuRuntime: "nvidia" | "cdi";
}

/** Body of the probe's container. */
export function probeBody(scene: Omit<ProbeScene, "docker" | "host">): Docker.ContainerCreateOptions {
  const all: Docker.DeviceRequest =
    scene.gpuRuntime === "cdi"
      ? { Driver: "cdi", Count: 0, DeviceIDs: ["nvidia.com/gpu=all"], Capabilities: [["gpu"]], Options: {} }
      : { Driver: "nvidia", Count: -1, DeviceIDs: [], Capabilities: [["gpu"]], Options: {} };
  return {
    Image: scene.image,
    Entrypoint: ["nvidia-smi"],
    Cmd: gpuQuery,
    Env: ["NVIDIA_DRIVER_CAPABILITIES=utility"],
    Labels: { [labels.fleet]: scene.fleet, [labels.role]: probeRole },
    NetworkDisabled: true,
    HostConfig: {
      ...{ ReadonlyRootfs: true, CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"], PidsLimit: 64 },
      LogConfig: { Type: "json-file", Config: { "max-size": "1m" } },
      DeviceRequests: [all],
    },
  };
}

/** Those of a process that was killed while it looked: one looks at a host at a time. @throws LaunchFailure */
export async function removeOldProbes(
  { docker, host, fleet }: Pick<ProbeScene, "docker" | "host" | "fleet">,
  signal: AbortSignal,
): Promise<void> {
  const what = "removing what looked for GPUs before";
  const filters = { label: [`${labels.fleet}=${fleet}`, `${labels.role}=${probeRole}`] };
  const answer = await asked(host, what, docker.listContainers({ all: true, filters }), signal);
  for (const { Id } of understood(host, what, ListAnswer, answer)) {
    const removal = docker
      .getContainer(Id)
      .remove({ force: true, v: true })
      .catch((error: unknown) => {
        if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error;
      });
    await asked(host, what, removal, signal);
  }
}

/** @throws LaunchFailure */
export async function probeGpus(scene: ProbeScene, signal: AbortSignal): Promise<GpuFact[]> {
  const { docker, host } = scene;
  const what = "looking for GPUs";
  const container = await asked(host, what, docker.createContainer(probeBody(scene)), signal);
  try {
    await asked(host, what, container.start(), signal, probeMs);
    const ending = await asked(host, what, container.wait(), signal, probeMs);
    const { StatusCode } = understood(host, what, EndAnswer, ending);
    const output = await asked(host, what, container.logs({ stdout: true, stderr: true, follow: false }), signal);
    const text = readFrames(output).join("\n");
    if (StatusCode !== 0) throw new Error(`nvidia-smi ended with ${StatusCode}: ${text.slice(0, 300)}`);
    return parseGpus(text);
  } finally {
    const removed = asked(host, what, container.remove({ force: true, v: true }), AbortSignal.timeout(answerMs));
    await removed.catch(() => undefined);
  }
}

/** One line for each: `0, GPU-8f…, 143771, NVIDIA H200`. Lines that are no GPU are passed over; memory that it shares counts as 0. */
export function parseGpus(text: string): GpuFact[] {
  return text.split("\n").flatMap((line) => {
    const [, index, uuid, memory, model] =
      /^\s*(\d+),\s*(GPU-[0-9a-fA-F-]{8,60}|MIG-[0-9a-zA-Z/-]{8,100}),\s*(\d+|\[N\/A\]),\s*(\S.*?)\s*$/.exec(line) ??
      [];
    if (!index || !uuid || !memory || !model) return [];
    return [{ uuid, index: Number(index), model, memoryMb: Number(memory) || 0 }];
  });
}
