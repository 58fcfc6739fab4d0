/** What this machine is, as a host of the fleet: `nvidia-smi` says its GPUs, where it is there. */
import { execFile } from "node:child_process";
import os from "node:os";
import { promisify } from "node:util";
import type { GpuFact, HostFacts } from "@rolldeck/contracts/ports/fleet";
import { gpuQuery, parseGpus } from "../docker/probe-gpus.ts";
import { isMissing } from "./placement-folder.ts";

const mega = 1024 * 1024;
const probeMs = 20_000;

export async function readMachine(signal: AbortSignal): Promise<HostFacts> {
  const found = await gpusOf(signal);
  const gpus = "gpus" in found ? found.gpus : [];
  return {
    daemon: "processes",
    system: `${os.type()} ${os.release()}`,
    cpus: os.availableParallelism(),
    memoryMb: Math.floor(os.totalmem() / mega),
    // The driver's own tool is there, and what it names can be given away.
    gpuRuntime: gpus.length > 0 ? "nvidia" : null,
    runtimes: [],
    cdiDevices: [],
    gpus,
    probeTrouble: "trouble" in found ? found.trouble : null,
  };
}

async function gpusOf(signal: AbortSignal): Promise<{ readonly gpus: GpuFact[] } | { readonly trouble: string }> {
  try {
    const { stdout } = await promisify(execFile)("nvidia-smi", gpuQuery, { signal, timeout: probeMs });
    const gpus = parseGpus(stdout);
    return gpus.length > 0 ? { gpus } : { trouble: "nvidia-smi names no GPU" };
  } catch (error) {
    signal.throwIfAborted();
    // A machine without a driver: no trouble of its own.
    if (isMissing(error)) return { gpus: [] };
    return { trouble: `nvidia-smi: ${error instanceof Error ? error.message : String(error)}`.slice(0, 500) };
  }
}
