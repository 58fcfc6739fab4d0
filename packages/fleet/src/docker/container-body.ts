/**
 * What a GPU worker's container is made with. Invariants: no capability and no way to gain one, a read-only root, a user that is not
 * root, no port but on the given loopback or private address, devices by their UUIDs alone; the run's key is in its environment
 * and nowhere else.
 */
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import type Docker from "dockerode";
import { roleFlags } from "../role-flags.ts";

/** Everything of a fleet carries these. */
export const labels = {
  fleet: "rolldeck.fleet",
  role: "rolldeck.role",
  worker: "rolldeck.fleet.worker",
  claim: "rolldeck.fleet.claim",
  run: "rolldeck.fleet.run",
  devices: "rolldeck.fleet.devices",
} as const;

export const workerPort = 8600;
const portName = `${workerPort}/tcp`;
const mega = 1024 * 1024;
const giga = 1024 * mega;
/** What torch passes between its processes goes through shared memory; Docker's 64 MB end a loader. */
const sharedMemory = { gpu: 16 * giga, cpu: 1 * giga };
const scratch = { gpu: 16 * giga, cpu: 1 * giga };

export interface BodyScene {
  readonly fleet: string;
  readonly network: string;
  readonly gpuRuntime: "nvidia" | "cdi" | null;
}

export const containerName = (spec: Pick<LaunchSpec, "workerId" | "claim">): string =>
  `rolldeck-fleet-${spec.workerId}-${spec.claim}`;
export const volumeName = (fleet: string, runId: string): string => `rolldeck-fleet-${fleet}-${runId}`;

export function containerBody(spec: LaunchSpec, scene: BodyScene): Docker.ContainerCreateOptions {
  const models = spec.modelFolder === null ? "/models" : "/models:/host-models";
  return {
    name: containerName(spec),
    Image: spec.image,
    Cmd: [
      ...["--host", "0.0.0.0", "--port", String(workerPort)],
      // A shared folder holds those of many runs.
      ...["--data-dir", spec.checkpointFolder === null ? "/data" : `/data/${spec.runId}`],
      ...["--model-roots", models, "--device", spec.device === "gpu" ? "cuda" : "cpu"],
      ...roleFlags(spec.role),
      ...spec.reads.flatMap((runId) => ["--also-read", otherFolder(spec, runId)]),
    ],
    Env: [
      `ROLLDECK_GPU_WORKER_KEY=${spec.key}`,
      "HF_HUB_OFFLINE=1",
      "PYTHONUNBUFFERED=1",
      "HOME=/tmp",
      ...(spec.device === "gpu" ? ["NVIDIA_DRIVER_CAPABILITIES=compute,utility"] : []),
    ],
    ExposedPorts: { [portName]: {} },
    Labels: {
      [labels.fleet]: scene.fleet,
      [labels.role]: "gpu-worker",
      [labels.worker]: spec.workerId,
      [labels.claim]: String(spec.claim),
      [labels.run]: spec.runId,
      [labels.devices]: spec.devices.join(","),
    },
    StopSignal: "SIGTERM",
    HostConfig: hostConfig(spec, scene),
  };
}

function hostConfig(spec: LaunchSpec, scene: BodyScene): Docker.HostConfig {
  const memory = spec.memoryMb === null ? null : spec.memoryMb * mega;
  return {
    // The planner alone starts things again.
    RestartPolicy: { Name: "no" },
    AutoRemove: false,
    Init: true,
    Privileged: false,
    ReadonlyRootfs: true,
    CapDrop: ["ALL"],
    SecurityOpt: ["no-new-privileges"],
    IpcMode: "private",
    ShmSize: sharedMemory[spec.device],
    PidsLimit: 4_096,
    ...(memory === null ? {} : { Memory: memory, MemorySwap: memory }),
    Ulimits: [
      { Name: "core", Soft: 0, Hard: 0 },
      { Name: "stack", Soft: 64 * mega, Hard: 64 * mega },
      // Memory that the driver pins.
      ...(spec.device === "gpu" ? [{ Name: "memlock", Soft: -1, Hard: -1 }] : []),
    ],
    Tmpfs: { "/tmp": `rw,exec,nosuid,nodev,mode=1777,size=${scratch[spec.device]}` },
    NetworkMode: scene.network,
    PortBindings: { [portName]: [{ HostIp: spec.address, HostPort: "" }] },
    // Bounded, and readable whatever the daemon's own default is.
    LogConfig: { Type: "json-file", Config: { "max-size": "20m", "max-file": "3" } },
    Mounts: mounts(spec, scene),
    DeviceRequests: spec.device === "gpu" ? [deviceRequest(spec.devices, scene.gpuRuntime)] : [],
  };
}

/** The GPUs that it holds leases of, and no other. */
export function deviceRequest(devices: readonly string[], runtime: BodyScene["gpuRuntime"]): Docker.DeviceRequest {
  if (runtime === "cdi") {
    const ids = devices.map((uuid) => `nvidia.com/gpu=${uuid}`);
    return { Driver: "cdi", Count: 0, DeviceIDs: ids, Capabilities: [["gpu"]], Options: {} };
  }
  return { Driver: "nvidia", Count: 0, DeviceIDs: [...devices], Capabilities: [["gpu"]], Options: {} };
}

/** Where the files of another run are in this one's container: a shared folder holds them already. */
const otherFolder = ({ checkpointFolder }: LaunchSpec, runId: string): string =>
  checkpointFolder === null ? `/parents/${runId}` : `/data/${runId}`;

function mounts(spec: LaunchSpec, scene: BodyScene): Docker.MountSettings[] {
  const { runId, reads, checkpointFolder, modelFolder } = spec;
  const checkpoints: Docker.MountSettings[] =
    checkpointFolder === null
      ? [
          volume(scene.fleet, runId, "/data"),
          ...reads.map((other) => ({ ...volume(scene.fleet, other, otherFolder(spec, other)), ReadOnly: true })),
        ]
      : [{ Type: "bind", Source: checkpointFolder, Target: "/data" }];
  if (modelFolder === null) return checkpoints;
  return [...checkpoints, { Type: "bind", Source: modelFolder, Target: "/host-models", ReadOnly: true }];
}

const volume = (fleet: string, runId: string, target: string): Docker.MountSettings => ({
  ...{ Type: "volume", Source: volumeName(fleet, runId), Target: target },
  VolumeOptions: {
    NoCopy: false,
    Labels: { [labels.fleet]: fleet, [labels.run]: runId },
    DriverConfig: { Name: "local", Options: {} },
  },
});
