/** The variables that say where sandboxes open, parsed once by each process that opens or looks into them. */
import { resolve } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { type SandboxRuntimeName, sandboxRuntimes } from "@rolldeck/contracts/run-config";
import { z } from "zod";

const optional = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value) => (value === "" ? undefined : value), schema.optional());

const Variables = z.object({
  /** Runtime of tasks that need an image. */
  ROLLDECK_SANDBOX: optional(z.enum(sandboxRuntimes)),
  ROLLDECK_DOCKER_SOCKET: optional(z.string()),
  /** Network of the steps of image builds: `none` (default), or one of the daemon's (`default`, `host`, a name). */
  ROLLDECK_DOCKER_BUILD_NETWORK: optional(z.string().regex(/^[A-Za-z0-9][\w.-]{0,100}$/)),
  /** Hours that an image built for a task or kept of a sandbox stays without being used. */
  ROLLDECK_DOCKER_KEEP_IMAGES_H: optional(z.coerce.number().min(1).max(87_600)),
  /** Image of infra/egress-proxy, the network it goes out by, and whether hosts of private addresses may be allowed. */
  ROLLDECK_EGRESS_IMAGE: optional(z.string().max(300)),
  ROLLDECK_EGRESS_NETWORK: optional(z.string().regex(/^[A-Za-z0-9][\w.-]{0,100}$/)),
  ROLLDECK_EGRESS_PRIVATE: optional(z.enum(["0", "1"])),
  ROLLDECK_SANDBOX_SERVER: optional(z.url({ protocol: /^https?$/ })),
  ROLLDECK_SANDBOX_TOKEN: optional(z.string().min(16)),
  ROLLDECK_SANDBOX_CA: optional(z.string()),
  ROLLDECK_KUBECONFIG: optional(z.string()),
  ROLLDECK_KUBERNETES_NAMESPACE: optional(z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)),
});

/** Longer than a weekend: a run that is looked at on Monday finds its images. */
const defaultKeepImagesH = 96;

export interface EgressSettings {
  /** Image of infra/egress-proxy; null = none, and allow-lists are refused. */
  readonly image: string | null;
  /** Network with the way out, beside the sandbox's own. */
  readonly network: string;
  /** Hosts of the list may have private addresses. */
  readonly allowPrivate: boolean;
}

export interface SandboxSettings {
  /** Of tasks that need an image, where their run names none. */
  readonly imageRuntime: SandboxRuntimeName;
  readonly docker: {
    readonly socket: string;
    /** Network of the steps of image builds; absent = none. */
    readonly buildNetwork?: string;
    /** How long an image that was made here stays without being used. */
    readonly keepImagesMs: number;
    /** The way out of sandboxes with a list of allowed hosts. */
    readonly egress: EgressSettings;
  };
  /** Null where no sandbox server is configured. */
  readonly remote: {
    readonly url: string;
    readonly token: string;
    /** Path of the certificates it is trusted by; null = the system's. */
    readonly caFile: string | null;
  } | null;
  /** Null where none is configured. */
  readonly kubernetes: { readonly kubeconfig: string; readonly namespace: string } | null;
}

/** @throws InputError naming each variable; values are not repeated (one is a secret) */
export function parseSandboxSettings(
  variables: Readonly<Record<string, string | undefined>>,
  cwd: string,
): SandboxSettings {
  const parsed = Variables.safeParse(variables);
  if (!parsed.success) {
    throw new InputError(parsed.error.issues.map(({ path, message }) => ({ path: path.join("."), message })));
  }
  const env = parsed.data;
  const remote = remoteOf(env.ROLLDECK_SANDBOX_SERVER, env.ROLLDECK_SANDBOX_TOKEN, env.ROLLDECK_SANDBOX_CA, cwd);
  const kubernetes =
    env.ROLLDECK_KUBECONFIG === undefined
      ? null
      : {
          kubeconfig: resolve(cwd, env.ROLLDECK_KUBECONFIG),
          namespace: env.ROLLDECK_KUBERNETES_NAMESPACE ?? "rolldeck",
        };
  return {
    imageRuntime: env.ROLLDECK_SANDBOX ?? (remote ? "remote" : kubernetes ? "kubernetes" : "docker"),
    docker: {
      socket: env.ROLLDECK_DOCKER_SOCKET ?? "/var/run/docker.sock",
      ...(env.ROLLDECK_DOCKER_BUILD_NETWORK === undefined ? {} : { buildNetwork: env.ROLLDECK_DOCKER_BUILD_NETWORK }),
      keepImagesMs: (env.ROLLDECK_DOCKER_KEEP_IMAGES_H ?? defaultKeepImagesH) * 3_600_000,
      egress: {
        image: env.ROLLDECK_EGRESS_IMAGE ?? null,
        network: env.ROLLDECK_EGRESS_NETWORK ?? "bridge",
        allowPrivate: env.ROLLDECK_EGRESS_PRIVATE === "1",
      },
    },
    remote,
    kubernetes,
  };
}

function remoteOf(
  url: string | undefined,
  token: string | undefined,
  ca: string | undefined,
  cwd: string,
): SandboxSettings["remote"] {
  if (url === undefined) return null;
  if (token === undefined) {
    throw new InputError([{ path: "ROLLDECK_SANDBOX_TOKEN", message: "is needed with ROLLDECK_SANDBOX_SERVER" }]);
  }
  return { url, token, caFile: ca === undefined ? null : resolve(cwd, ca) };
}
