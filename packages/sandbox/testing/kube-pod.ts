/** A pod as it was asked for, and what a node does for it: its folders, empty ones and those with what the node tells. */
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type Docker from "dockerode";
import { z } from "zod";

export const Pod = z.looseObject({
  metadata: z.looseObject({
    name: z.string().regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/),
    labels: z.record(z.string(), z.string().max(63)).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  spec: z.looseObject({
    activeDeadlineSeconds: z.int().optional(),
    automountServiceAccountToken: z.literal(false),
    volumes: z
      .array(
        z.looseObject({
          name: z.string(),
          emptyDir: z.looseObject({ sizeLimit: z.string().optional() }).optional(),
          hostPath: z.looseObject({ path: z.string() }).optional(),
          persistentVolumeClaim: z.looseObject({ claimName: z.string() }).optional(),
          downwardAPI: z
            .object({
              items: z.array(z.object({ path: z.string(), fieldRef: z.looseObject({ fieldPath: z.string() }) })),
            })
            .optional(),
        }),
      )
      .default([]),
    containers: z
      .array(
        z.looseObject({
          name: z.string(),
          image: z.string(),
          command: z.array(z.string()).optional(),
          args: z.array(z.string()).optional(),
          stdin: z.boolean().default(false),
          workingDir: z.string().optional(),
          env: z
            .array(
              z.object({
                name: z.string(),
                value: z.string().optional(),
                valueFrom: z.object({ secretKeyRef: z.object({ name: z.string(), key: z.string() }) }).optional(),
              }),
            )
            .default([]),
          /** One that is reached: it gets an address. */
          ports: z.array(z.looseObject({ containerPort: z.int() })).default([]),
          resources: z.looseObject({ limits: z.record(z.string(), z.string()).default({}) }).prefault({}),
          securityContext: z
            .looseObject({ runAsUser: z.int().optional(), readOnlyRootFilesystem: z.boolean().default(false) })
            .prefault({}),
          volumeMounts: z
            .array(z.looseObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().default(false) }))
            .default([]),
        }),
      )
      .min(1),
  }),
});
export type Pod = z.output<typeof Pod>;

export const gpuResource = "nvidia.com/gpu";
export const gpusOf = ({ spec }: Pod): number =>
  spec.containers.reduce((sum, { resources }) => sum + Number(resources.limits[gpuResource] ?? 0), 0);

export interface KubeNode {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly status: {
    readonly allocatable: Readonly<Record<string, string>>;
    readonly conditions: readonly { readonly type: string; readonly status: string }[];
  };
}

/** GPUs that no node has left for this pod; null: there are enough, on one node. */
export function unschedulable(
  held: HeldPod,
  pods: ReadonlyMap<string, HeldPod>,
  nodes: readonly KubeNode[],
): string | null {
  const wanted = gpusOf(held.pod);
  if (wanted === 0) return null;
  const others = [...pods.values()].filter((other) => other !== held && other.container !== null);
  const taken = others.reduce((sum, { pod }) => sum + gpusOf(pod), 0);
  const most = Math.max(0, ...nodes.map(({ status }) => Number(status.allocatable[gpuResource] ?? 0)));
  if (taken + wanted <= most) return null;
  return `0/${nodes.length} nodes are available: ${nodes.length} Insufficient ${gpuResource}.`;
}

/** Where pods are reached at addresses of their own. */
export const podNetworkName = "rolldeck-kube-pods";
export async function podNetwork(docker: Docker): Promise<string> {
  const making = docker.createNetwork({ Name: podNetworkName, Driver: "bridge", CheckDuplicate: true });
  await making.catch((error: unknown) => {
    if (!(error instanceof Error && "statusCode" in error && error.statusCode === 409)) throw error;
  });
  return podNetworkName;
}

export interface HeldPod {
  /** What the node writes for it: a folder on this machine, by volume. */
  readonly folders: Map<string, string>;
  readonly pod: Pod;
  readonly createdAt: Date;
  container: Docker.Container | null;
  /** Why it never came up. */
  trouble: { readonly reason: string; readonly message: string } | null;
}

/** Made on this machine, for a container's options. */
export function mountsOf(held: HeldPod, main: Pod["spec"]["containers"][number]) {
  for (const { name, downwardAPI } of held.pod.spec.volumes) {
    if (downwardAPI) held.folders.set(name, mkdtempSync(join(tmpdir(), "rolldeck-kube-volume-")));
  }
  writeFolders(held);
  const sources = new Map(held.pod.spec.volumes.map((volume) => [volume.name, volume]));
  const binds = main.volumeMounts.flatMap(({ name, mountPath, readOnly }) => {
    const { hostPath, persistentVolumeClaim: claim } = sources.get(name) ?? {};
    const kept = hostPath?.path ?? (claim === undefined ? undefined : claimVolume(claim.claimName));
    if (kept !== undefined) return [`${kept}:${mountPath}${readOnly ? ":ro" : ""}`];
    const folder = held.folders.get(name);
    // Nobody in a pod writes to what the node tells it.
    return folder === undefined ? [] : [`${folder}:${mountPath}:ro`];
  });
  const empty = main.volumeMounts.filter(({ name }) => sources.get(name)?.emptyDir !== undefined);
  const tmpfs = Object.fromEntries(
    empty.map(({ name, mountPath }) => [mountPath, `rw,exec,mode=1777,size=${sizeOf(held.pod, name)}m`]),
  );
  return { binds, tmpfs };
}

/** A claim is a volume of the daemon. */
export const claimVolume = (claim: string): string => `rolldeck-kube-claim-${claim}`;

/** Whole files, as a node writes them. */
export function writeFolders({ pod, folders }: HeldPod): void {
  for (const { name, downwardAPI } of pod.spec.volumes) {
    const folder = folders.get(name);
    if (folder === undefined) continue;
    chmodSync(folder, 0o755);
    for (const { path, fieldRef } of downwardAPI?.items ?? []) {
      const key = /^metadata\.annotations\['(.+)'\]$/.exec(fieldRef.fieldPath)?.[1] ?? "";
      writeFileSync(join(folder, `${path}.new`), pod.metadata.annotations[key] ?? "", { mode: 0o644 });
      renameSync(join(folder, `${path}.new`), join(folder, path));
    }
  }
}

export async function dropped({ container, folders }: HeldPod): Promise<void> {
  await container?.remove({ force: true }).catch(() => undefined);
  for (const folder of folders.values()) rmSync(folder, { recursive: true, force: true });
}

/** Of an empty folder's volume, MiB. */
const sizeOf = ({ spec }: Pod, name: string): number =>
  Number.parseInt(spec.volumes.find((volume) => volume.name === name)?.emptyDir?.sizeLimit ?? "256", 10);
