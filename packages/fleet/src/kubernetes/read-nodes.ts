/** What a cluster's nodes are, as one host of the fleet. Pure. */
import type { GpuFact, HostFacts } from "@rolldeck/contracts/ports/fleet";
import type { Node } from "./answers.ts";
import { gpuResource } from "./worker-pod.ts";

const mega = 1024 * 1024;
/** Set by NVIDIA's feature discovery, where that runs. */
const modelLabel = "nvidia.com/gpu.product";
const memoryLabel = "nvidia.com/gpu.memory";

/**
 * Nodes that take pods, together. A GPU's id says which one of the host it is: the cluster gives pods GPUs by number. Its model and
 * memory are those of its node.
 */
export function factsOf(host: string, version: string, nodes: readonly Node[]): HostFacts {
  const taking = nodes.filter(
    ({ spec, status }) =>
      !spec?.unschedulable && status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
  );
  const gpus = taking
    .flatMap((node) => gpusOf(node))
    .map((gpu, index): GpuFact => ({ ...gpu, index, uuid: `${host}-gpu-${index}` }));
  const sum = (resource: string): number =>
    taking.reduce((total, { status }) => total + amountOf(status?.allocatable?.[resource]), 0);
  return {
    daemon: `Kubernetes ${version}`,
    system: `${taking.length} nodes`,
    cpus: Math.floor(sum("cpu")),
    memoryMb: Math.floor(sum("memory") / mega),
    // Its device plugin's doing; where there is none, nodes show no GPU.
    gpuRuntime: gpus.length > 0 ? "nvidia" : null,
    runtimes: [],
    cdiDevices: [],
    gpus,
    probeTrouble: null,
  };
}

function gpusOf({ metadata, status }: Node): Pick<GpuFact, "model" | "memoryMb">[] {
  const count = Math.floor(amountOf(status?.allocatable?.[gpuResource]));
  const model = metadata.labels?.[modelLabel] ?? "GPU";
  const memoryMb = Number.parseInt(metadata.labels?.[memoryLabel] ?? "0", 10) || 0;
  return Array.from({ length: count }, () => ({ model, memoryMb }));
}

const units: Readonly<Record<string, number>> = {
  ...{ m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 },
  ...{ Ki: 1024, Mi: mega, Gi: 1024 * mega, Ti: 1024 * 1024 * mega },
};

/** A quantity of Kubernetes: `3920m`, `65Gi`. What is none counts as nothing. */
export function amountOf(quantity: string | undefined): number {
  const [, number = "0", unit = ""] = /^(\d+(?:\.\d+)?)([A-Za-z]{0,2})$/.exec(quantity ?? "") ?? [];
  return Number(number) * (units[unit] ?? 0);
}
