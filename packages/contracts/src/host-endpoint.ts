/**
 * Where GPU workers can be launched, and how that is reached. Keys, tokens and certificates are named by path, never stored.
 * What gives no TLS to its workers is on loopback or a private network.
 */
import { z } from "zod";
import { label } from "./label.ts";

/** A folder or file on the machine of the control plane. */
export const absolutePath = z
  .string()
  .max(400)
  .regex(/^\/[^\p{Cc}]*$/u, "must be an absolute path");
/** ssh reads its file options as lists, and puts things in the place of these. */
const sshFile = absolutePath.regex(
  /^[^\s"'%$\\]*$/u,
  "must be a path without blanks, quotes, %, $ and \\: ssh gives them a meaning of their own",
);
const hostName = z
  .string()
  .max(253)
  .refine(
    (host) => /^(?!-)[A-Za-z0-9._-]+$/.test(host) || z.ipv6().safeParse(host).success,
    "must be a host name or an address; the port is a field of its own",
  );
const port = z.int().min(1).max(65_535);

const privateAddress =
  /^(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|169\.254\.)[\d.]+$|^::1$|^f[cd][0-9a-f:]+$|^fe80:/i;
const loopbackAddress = /^127\.[\d.]+$|^::1$/;
export const isPrivateAddress = (address: string): boolean =>
  z.union([z.ipv4(), z.ipv6()]).safeParse(address).success && privateAddress.test(address);
export const isLoopback = (address: string): boolean => isPrivateAddress(address) && loopbackAddress.test(address);
/** Brackets are a URL's way to write an address. */
export const hostOfUrl = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, "");
const hasPrivateHost = (url: string): boolean => !URL.canParse(url) || isPrivateAddress(hostOfUrl(url));

/** How a host's Docker daemon is reached. Keys and certificates are named by path, never stored. */
export const DockerEndpoint = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("socket"), path: absolutePath }),
  z.strictObject({
    kind: z.literal("tcp"),
    host: hostName,
    port: port.default(2376),
    /** Folder with ca.pem, cert.pem and key.pem, as Docker's own clients have it. A daemon without TLS is refused. */
    certFolder: absolutePath,
  }),
  z.strictObject({
    kind: z.literal("ssh"),
    host: hostName,
    port: port.default(22),
    user: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/, "must be an account's name")
      .nullable()
      .default(null),
    /** Private key; null = what `ssh` of this account uses by itself. */
    keyFile: sshFile.nullable().default(null),
    /** Where the host's own key must be; null = this account's known hosts. An unknown key is refused. */
    knownHostsFile: sshFile.nullable().default(null),
  }),
]);
export type DockerEndpoint = z.infer<typeof DockerEndpoint>;

/** Kubernetes' names of things: RFC 1123 labels, with dots where a subdomain may stand. */
const kubernetesName = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/, "must be a Kubernetes name");

/** Workers as pods of a namespace. This server reaches them at the addresses of their pods. */
export const KubernetesEndpoint = z.strictObject({
  kind: z.literal("kubernetes"),
  /** On the machine of the control plane; read anew by each connection. */
  kubeconfig: absolutePath,
  /** Of that file; null = its current one. */
  context: z.string().min(1).max(253).nullable().default(null),
  namespace: kubernetesName.default("rolldeck"),
  /** Nodes that workers may be on, by their labels; best are nodes that are alike. */
  nodeSelector: z.record(z.string().max(317), z.string().max(63)).default({}),
  /** A claim of that namespace for checkpoints, which several nodes can write. Needed where the host has no checkpoint folder. */
  checkpointClaim: kubernetesName.nullable().default(null),
});
export type KubernetesEndpoint = z.infer<typeof KubernetesEndpoint>;

/** Workers as jobs of a Ray cluster. Whoever may give it jobs may run anything there: an address that only the own network has. */
export const RayEndpoint = z.strictObject({
  kind: z.literal("ray"),
  /** Of the dashboard: `http://10.0.0.5:8265`. A name could lead anywhere by tomorrow. */
  url: z
    .url({ protocol: /^https?$/, error: "must be the http or https address of a Ray dashboard" })
    .refine(
      hasPrivateHost,
      "must have a loopback or private address as its host: whoever reaches it runs what he wants",
    )
    .refine((url) => !URL.canParse(url) || new URL(url).username === "", "must hold no password: see tokenFile"),
  /** On the machine of the control plane, where the cluster wants a token; read anew by each connection. */
  tokenFile: absolutePath.nullable().default(null),
  /** What starts a worker on a node: a line for its shell, to which our own flags are added. */
  entrypoint: label(2_000).default("exec python3 -m rolldeck_gpu_worker.keeper"),
});
export type RayEndpoint = z.infer<typeof RayEndpoint>;

/** Workers as processes of the machine of the control plane. */
export const ProcessEndpoint = z.strictObject({ kind: z.literal("process") });

/** Where GPU workers can be launched. */
export const HostEndpoint = z.discriminatedUnion("kind", [
  ...DockerEndpoint.options,
  KubernetesEndpoint,
  RayEndpoint,
  ProcessEndpoint,
]);
export type HostEndpoint = z.infer<typeof HostEndpoint>;

/** One line for a person: where that is. */
export function endpointText(endpoint: HostEndpoint): string {
  if (endpoint.kind === "kubernetes") return `kubernetes://${endpoint.context ?? "current"}/${endpoint.namespace}`;
  if (endpoint.kind === "ray") return `ray at ${endpoint.url}`;
  if (endpoint.kind === "process") return "processes of this machine";
  if (endpoint.kind === "socket") return `unix://${endpoint.path}`;
  if (endpoint.kind === "tcp") return `tcp://${endpoint.host}:${endpoint.port} (TLS)`;
  return `ssh://${endpoint.user === null ? "" : `${endpoint.user}@`}${endpoint.host}:${endpoint.port}`;
}
