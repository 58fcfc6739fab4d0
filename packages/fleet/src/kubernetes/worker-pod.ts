/**
 * A GPU worker as a pod, and its key as a secret of the pod. Pure. Invariants: no service account's token, no capability and no way to
 * gain one, a read-only root, a user that is not root, limits always; GPUs by number, for the cluster alone chooses them; the run's
 * key is in the secret and nowhere else.
 */
import type { V1Container, V1Pod, V1Secret, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import type { KubernetesEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { LaunchFailure } from "../launch-failure.ts";
import { roleFlags } from "../role-flags.ts";

export const labels = {
  fleet: "rolldeck.dev/fleet",
  role: "rolldeck.dev/role",
  worker: "rolldeck.dev/worker",
  claim: "rolldeck.dev/claim",
  run: "rolldeck.dev/run",
} as const;
/** Too long for a label. */
export const devicesAnnotation = "rolldeck.dev/devices";
export const workerRole = "gpu-worker";
export const gpuResource = "nvidia.com/gpu";
export const mainContainer = "worker";
export const workerPort = 8600;

const keyEntry = "key";
/** Of the image. */
const user = 10_001;
const sharedMemory = { gpu: "16Gi", cpu: "1Gi" };
const scratch = { gpu: "16Gi", cpu: "1Gi" };

export interface PodScene {
  readonly fleet: string;
  readonly host: string;
  readonly endpoint: KubernetesEndpoint;
}

/** Ids of ours are lower-case but for some letters; a name that has to be changed is made another's by no accident: the claim ends it. */
export const podName = ({ workerId, claim }: Pick<LaunchSpec, "workerId" | "claim">): string =>
  `rolldeck-fleet-${workerId.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}-${claim}`.slice(0, 63);

/** @throws LaunchFailure for an id that no label can hold, and where checkpoints have no home */
export function workerPod(spec: LaunchSpec, scene: PodScene): V1Pod {
  const { endpoint } = scene;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: podName(spec),
      labels: {
        "app.kubernetes.io/managed-by": "rolldeck",
        [labels.fleet]: labelOf("fleet", scene.fleet),
        [labels.role]: workerRole,
        [labels.worker]: labelOf("worker", spec.workerId),
        [labels.claim]: String(spec.claim),
        [labels.run]: labelOf("run", spec.runId),
      },
      annotations: { [devicesAnnotation]: spec.devices.join(",") },
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // The planner alone starts things again.
      restartPolicy: "Never",
      nodeSelector: endpoint.nodeSelector,
      // Where GPU nodes are kept for those that ask for GPUs.
      ...(spec.device === "gpu"
        ? { tolerations: [{ key: gpuResource, operator: "Exists", effect: "NoSchedule" }] }
        : {}),
      securityContext: { seccompProfile: { type: "RuntimeDefault" }, runAsNonRoot: true, fsGroup: user },
      containers: [container(spec)],
      volumes: volumes(spec, scene),
    },
  };
}

/** Goes with its pod. */
export function keySecret(spec: LaunchSpec, scene: PodScene, podUid: string): V1Secret {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: podName(spec),
      labels: { [labels.fleet]: scene.fleet, [labels.role]: workerRole },
      ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: podName(spec), uid: podUid }],
    },
    type: "Opaque",
    data: { [keyEntry]: Buffer.from(spec.key).toString("base64") },
  };
}

function container(spec: LaunchSpec): V1Container {
  const models = spec.modelFolder === null ? "/models" : "/models:/host-models";
  return {
    name: mainContainer,
    image: spec.image,
    imagePullPolicy: "IfNotPresent",
    args: [
      ...["--host", "0.0.0.0", "--port", String(workerPort), "--data-dir", `/data/${spec.runId}`],
      ...["--model-roots", models, "--device", spec.device === "gpu" ? "cuda" : "cpu"],
      ...roleFlags(spec.role),
      ...spec.reads.flatMap((runId) => ["--also-read", `/data/${runId}`]),
    ],
    env: [
      {
        name: "ROLLDECK_GPU_WORKER_KEY",
        valueFrom: { secretKeyRef: { name: podName(spec), key: keyEntry } },
      },
      { name: "HF_HUB_OFFLINE", value: "1" },
      { name: "PYTHONUNBUFFERED", value: "1" },
      { name: "HOME", value: "/tmp" },
    ],
    ports: [{ containerPort: workerPort, protocol: "TCP" }],
    resources: { limits: resources(spec), requests: resources(spec) },
    securityContext: {
      ...{ runAsUser: user, runAsGroup: user, runAsNonRoot: true, privileged: false },
      ...{ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    },
    volumeMounts: mounts(spec),
  };
}

function resources({ device, devices, memoryMb }: LaunchSpec): Record<string, string> {
  const wanted: Record<string, string> = {};
  if (memoryMb !== null) wanted.memory = `${memoryMb}Mi`;
  if (device === "gpu") wanted[gpuResource] = String(devices.length);
  return wanted;
}

function mounts(spec: LaunchSpec): V1VolumeMount[] {
  const always = [
    { name: "checkpoints", mountPath: "/data" },
    { name: "tmp", mountPath: "/tmp" },
    { name: "shared-memory", mountPath: "/dev/shm" },
  ];
  return spec.modelFolder === null
    ? always
    : [...always, { name: "models", mountPath: "/host-models", readOnly: true }];
}

function volumes(spec: LaunchSpec, scene: PodScene): V1Volume[] {
  const always: V1Volume[] = [
    { name: "checkpoints", ...checkpointsOf(spec, scene) },
    { name: "tmp", emptyDir: { sizeLimit: scratch[spec.device] } },
    { name: "shared-memory", emptyDir: { medium: "Memory", sizeLimit: sharedMemory[spec.device] } },
  ];
  if (spec.modelFolder === null) return always;
  return [...always, { name: "models", hostPath: { path: spec.modelFolder, type: "Directory" } }];
}

/** A folder of the nodes goes first: the operator named it for this host. */
function checkpointsOf(spec: LaunchSpec, { endpoint, host }: PodScene): Omit<V1Volume, "name"> {
  if (spec.checkpointFolder !== null) return { hostPath: { path: spec.checkpointFolder, type: "Directory" } };
  if (endpoint.checkpointClaim !== null) return { persistentVolumeClaim: { claimName: endpoint.checkpointClaim } };
  throw new LaunchFailure({
    code: "launch-failed",
    message: `what workers save on ${host} has no place: a pod's own disk ends with it`,
    remedy: "register it with a persistent volume claim for checkpoints, or a folder that its nodes share",
  });
}

/** @throws LaunchFailure */
function labelOf(what: string, value: string): string {
  if (/^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/.test(value)) return value;
  throw new LaunchFailure({
    code: "launch-failed",
    message: `the id of the ${what} is none that a label of Kubernetes can hold: ${value.slice(0, 80)}`,
    remedy: null,
  });
}
