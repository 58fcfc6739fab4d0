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
          env: z.array(z.object({ name: z.string(), value: z.string() })).default([]),
          resources: z.looseObject({ limits: z.record(z.string(), z.string()).default({}) }).prefault({}),
          securityContext: z.looseObject({ runAsUser: z.int().optional() }).prefault({}),
          volumeMounts: z
            .array(z.looseObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().default(false) }))
            .default([]),
        }),
      )
      .min(1),
  }),
});
export type Pod = z.output<typeof Pod>;

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
  const binds = main.volumeMounts.flatMap(({ name, mountPath }) => {
    const folder = held.folders.get(name);
    // Nobody in a pod writes to what the node tells it.
    return folder === undefined ? [] : [`${folder}:${mountPath}:ro`];
  });
  const empty = main.volumeMounts.filter(({ name }) => !held.folders.has(name));
  const tmpfs = Object.fromEntries(
    empty.map(({ name, mountPath }) => [mountPath, `rw,exec,mode=1777,size=${sizeOf(held.pod, name)}m`]),
  );
  return { binds, tmpfs };
}

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
