/**
 * A sandbox as a pod. Pure. Invariants: no service account's token, no privilege to gain, every capability dropped, limits on cpu,
 * memory and disk always; what Kubernetes can't do of a spec is refused by name.
 */
import type { V1Container, V1Pod, V1Volume } from "@kubernetes/client-node";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ImageSource, SandboxResources, SandboxService, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { keeperCommand, keeperFolder, leaseAnnotation, leaseFileName } from "./keeper.ts";

export const mainContainer = "main";
export const labelPrefix = "rolldeck.dev/";
export const managedBy = { "app.kubernetes.io/managed-by": "rolldeck" } as const;

const defaults = { cpus: 2, memoryMb: 4096, diskMb: 10_240 } as const;

export const podName = (id: string): string => `rolldeck-${id.slice("sbx_".length)}`;

/** Label values of Kubernetes: at most 63 letters, digits and `-_.`, a letter or digit at both ends. */
export const labelValue = (value: string): string =>
  value
    .replaceAll(/[^A-Za-z0-9._-]/g, "-")
    .slice(0, 63)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "");

/**
 * @param now Unix seconds
 * @throws BoundaryError("sandbox", "refused") naming what a pod can't have
 */
export function podOf(spec: SandboxSpec, deployment: string, now: number): V1Pod {
  if (spec.network.mode === "allow-list") throw refused("an allow-list of hosts: use none or public");
  if (spec.mounts.length > 0) throw refused("mounts of the operator's disk");
  const labels = Object.fromEntries(
    Object.entries(spec.labels).map(([name, value]) => [`${labelPrefix}${labelValue(name)}`, labelValue(value)]),
  );
  const until = now + Math.ceil(spec.leaseMs / 1000);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: podName(spec.id),
      labels: {
        ...labels,
        ...managedBy,
        [`${labelPrefix}deployment`]: labelValue(deployment),
        [`${labelPrefix}sandbox`]: spec.id,
        [`${labelPrefix}network`]: spec.network.mode,
      },
      // Labels are cut to what they may hold; these are whole.
      annotations: {
        ...Object.fromEntries(
          Object.entries(spec.labels).map(([name, value]) => [`${labelPrefix}label-${labelValue(name)}`, value]),
        ),
        [leaseAnnotation]: String(until),
      },
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 0,
      activeDeadlineSeconds: Math.max(1, Math.ceil(spec.maxLifeMs / 1000)),
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
      hostAliases: spec.services.length === 0 ? undefined : [{ ip: "127.0.0.1", hostnames: namesOf(spec.services) }],
      containers: [mainOf(spec, until), ...spec.services.map(serviceOf)],
      volumes: volumes(spec.resources),
    },
  };
}

const namesOf = (services: readonly SandboxService[]): string[] => services.map(({ name }) => name);

function mainOf(spec: SandboxSpec, until: number): V1Container {
  if (spec.image === null) throw refused("a sandbox without an image");
  return {
    name: mainContainer,
    image: imageName(spec.image),
    imagePullPolicy: "IfNotPresent",
    command: keeperCommand(until),
    stdin: true,
    workingDir: spec.workdir ?? undefined,
    env: variables(spec.environment),
    resources: limits(spec.resources),
    securityContext: { ...locked, ...userOf(spec.user) },
    volumeMounts: [
      { name: "keeper", mountPath: keeperFolder, readOnly: true },
      { name: "tmp", mountPath: "/tmp" },
    ],
  };
}

/** Beside the agent's container on the pod's own loopback: its name leads there. */
function serviceOf(service: SandboxService): V1Container {
  const { healthcheck: check } = service;
  return {
    name: `service-${labelValue(service.name).toLowerCase()}`,
    image: imageName(service.image),
    imagePullPolicy: "IfNotPresent",
    args: service.command === null ? undefined : [...service.command],
    env: variables(service.environment),
    resources: limits(service.resources),
    securityContext: locked,
    readinessProbe: check
      ? {
          exec: { command: [...check.command] },
          initialDelaySeconds: Math.ceil(check.startMs / 1000),
          periodSeconds: Math.max(1, Math.ceil(check.intervalMs / 1000)),
          timeoutSeconds: Math.max(1, Math.ceil(check.timeoutMs / 1000)),
          failureThreshold: Math.max(1, check.retries),
        }
      : undefined,
  };
}

const locked = { allowPrivilegeEscalation: false, privileged: false, capabilities: { drop: ["ALL"] } };

/** A name of the image's own users can't be given to a pod, numbers can. */
function userOf(user: string | undefined): { runAsUser?: number; runAsGroup?: number } {
  if (user === undefined) return {};
  const [uid = "", gid] = user === "root" ? ["0", "0"] : user.split(":");
  if (!/^\d+$/.test(uid) || (gid !== undefined && !/^\d+$/.test(gid))) throw refused(`the user ${user}: give a number`);
  return { runAsUser: Number(uid), ...(gid === undefined ? {} : { runAsGroup: Number(gid) }) };
}

export function imageName(image: ImageSource): string {
  if (image.kind === "name") return image.name;
  throw refused("images that are built on the spot: build it, push it and name it");
}

const variables = (environment: Readonly<Record<string, string>>) =>
  Object.entries(environment).map(([name, value]) => ({ name, value }));

function limits({ cpus, memoryMb, diskMb }: SandboxResources): V1Container["resources"] {
  const cpu = `${Math.max(1, Math.round((cpus ?? defaults.cpus) * 1000))}m`;
  const memory = `${memoryMb ?? defaults.memoryMb}Mi`;
  const disk = `${diskMb ?? defaults.diskMb}Mi`;
  return {
    limits: { cpu, memory, "ephemeral-storage": disk },
    // Agents think more than they compute: a fraction of a core is set aside for each.
    requests: { cpu: "100m", memory: `${Math.min(512, memoryMb ?? defaults.memoryMb)}Mi` },
  };
}

const volumes = ({ memoryMb }: SandboxResources): V1Volume[] => [
  {
    name: "keeper",
    downwardAPI: {
      items: [{ path: leaseFileName, fieldRef: { fieldPath: `metadata.annotations['${leaseAnnotation}']` } }],
    },
  },
  { name: "tmp", emptyDir: { sizeLimit: `${Math.max(64, Math.floor((memoryMb ?? defaults.memoryMb) / 2))}Mi` } },
];

const refused = (what: string): BoundaryError =>
  new BoundaryError("sandbox", "refused", `kubernetes sandboxes can't have ${what}`);
