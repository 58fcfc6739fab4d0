/** What a host is, as its daemon says it and as a short container sees its GPUs. */
import type { HostFacts } from "@rolldeck/contracts/ports/fleet";
import type Docker from "dockerode";
import type { z } from "zod";
import { LaunchFailure } from "../launch-failure.ts";
import { InfoAnswer } from "./answers.ts";
import { type AskedHost, asked, understood } from "./daemon-words.ts";
import { probeGpus, removeOldProbes } from "./probe-gpus.ts";

type Info = z.infer<typeof InfoAnswer>;
const mega = 1024 * 1024;

export async function readInfo(docker: Docker, host: AskedHost, signal: AbortSignal): Promise<Info> {
  const what = "asking what it is";
  return understood(host, what, InfoAnswer, await asked(host, what, docker.info(), signal));
}

const cdiDevicesOf = (info: Info): string[] =>
  (info.DiscoveredDevices ?? []).filter(({ Source }) => Source === "cdi").map(({ ID }) => ID);

/** How containers are given GPUs there. The NVIDIA runtime goes first: a daemon that has both is used to it. */
export function gpuRuntimeOf(info: Info): "nvidia" | "cdi" | null {
  if ("nvidia" in (info.Runtimes ?? {})) return "nvidia";
  return cdiDevicesOf(info).some((id) => id.startsWith("nvidia.com/gpu=")) ? "cdi" : null;
}

/** @throws LaunchFailure when the host does not answer; a probe that fails is told in the facts */
export async function readFacts(
  scene: { readonly docker: Docker; readonly host: AskedHost; readonly fleet: string; readonly image: string },
  signal: AbortSignal,
): Promise<HostFacts> {
  const info = await readInfo(scene.docker, scene.host, signal);
  const known = {
    daemon: info.ServerVersion,
    system: info.OperatingSystem,
    cpus: info.NCPU,
    memoryMb: Math.floor(info.MemTotal / mega),
    runtimes: Object.keys(info.Runtimes ?? {}).sort(),
    cdiDevices: cdiDevicesOf(info).sort(),
  };
  await removeOldProbes(scene, signal);
  const gpuRuntime = gpuRuntimeOf(info);
  if (gpuRuntime === null) return { ...known, gpuRuntime, gpus: [], probeTrouble: null };
  try {
    const gpus = await probeGpus({ ...scene, gpuRuntime }, signal);
    const probeTrouble = gpus.length > 0 ? null : "nvidia-smi names no GPU";
    return { ...known, gpuRuntime, gpus, probeTrouble };
  } catch (error) {
    signal.throwIfAborted();
    const failure = error instanceof LaunchFailure ? error.reason.code : null;
    if (failure === "unavailable") throw error;
    const probeTrouble = (error instanceof Error ? error.message : String(error)).slice(0, 500);
    // It names the runtime and does not have it.
    return { ...known, gpuRuntime: failure === "no-gpu-runtime" ? null : gpuRuntime, gpus: [], probeTrouble };
  }
}
