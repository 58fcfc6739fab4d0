/** The tables of a compose file as they are written, and the keys that are refused or have no effect. */
import { z } from "zod";

const Words = z.union([z.string(), z.array(z.string())]);
const Scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const Environment = z.union([
  z.record(z.string(), Scalar.nullable()),
  z.array(z.string()).transform((lines) =>
    Object.fromEntries(
      lines.map((line): [string, string | null] => {
        const at = line.indexOf("=");
        return at === -1 ? [line, null] : [line.slice(0, at), line.slice(at + 1)];
      }),
    ),
  ),
]);
export const Check = z.object({
  test: Words.optional(),
  interval: z.string().optional(),
  timeout: z.string().optional(),
  start_period: z.string().optional(),
  retries: z.int().min(1).max(1000).optional(),
  disable: z.boolean().optional(),
});
const Waits = z.union([
  z.array(z.string()).transform((names) => names.map((name) => ({ name, condition: "service_started" }))),
  z
    .record(z.string(), z.object({ condition: z.string().default("service_started") }))
    .transform((map) => Object.entries(map).map(([name, { condition }]) => ({ name, condition }))),
]);
const Limits = z.object({ cpus: Scalar.optional(), memory: Scalar.optional() });
export const Service = z.object({
  image: z.string().min(1).optional(),
  build: z
    .union([
      z.string().transform((context) => ({ context, dockerfile: "Dockerfile" })),
      z.object({
        context: z.string().default("."),
        dockerfile: z.string().default("Dockerfile"),
        args: z.unknown().optional(),
        target: z.unknown().optional(),
      }),
    ])
    .optional(),
  command: Words.nullish(),
  environment: Environment.default({}),
  healthcheck: Check.optional(),
  depends_on: Waits.default([]),
  deploy: z.object({ resources: z.object({ limits: Limits.optional() }).optional() }).optional(),
  cpus: Scalar.optional(),
  mem_limit: Scalar.optional(),
});
export type Service = z.output<typeof Service>;
export const File = z.looseObject({ services: z.record(z.string(), z.looseObject({})) });

const refused: Readonly<Record<string, string>> = {
  volumes: "folders of the host and shared volumes are not given to sandboxes",
  ports: "nothing of a sandbox is published on the host; services reach each other by name without it",
  privileged: "a privileged container is no sandbox",
  cap_add: "sandboxes have no capabilities",
  devices: "sandboxes have no devices",
  network_mode: "a rollout's services share one network of their own",
  networks: "a rollout's services share one network of their own",
  pid: "sandboxes have their own processes",
  ipc: "sandboxes have their own memory",
  userns_mode: "sandboxes have their own users",
  security_opt: "the limits of a sandbox are the server's",
  sysctls: "the limits of a sandbox are the server's",
  cgroup_parent: "the limits of a sandbox are the server's",
  runtime: "the runtime is the operator's choice",
  extra_hosts: "a sandbox's hosts are the server's",
  env_file: "a task reads no files of the host",
  entrypoint: "services run their image's own entry point",
  user: "services run as their image says",
  working_dir: "services work where their image says",
  secrets: "a task gets no secrets of the host",
  configs: "a task gets no configs of the host",
  links: "services reach each other by name",
  extends: "a service is written out in the one file",
  tmpfs: "a service's memory is bounded by its limits alone",
  gpus: "sandboxes have no GPU",
};
const known = new Set(Object.keys(Service.shape));
/** What Harbor's own templates set on `main`, and what a rollout has its own way of. */
const harmless = new Set([
  "container_name",
  "hostname",
  "restart",
  "init",
  "tty",
  "stdin_open",
  "expose",
  "labels",
  "platform",
  "pull_policy",
  "stop_grace_period",
  "stop_signal",
  "logging",
  "profiles",
  "shm_size",
  "cap_drop",
  "read_only",
]);

/** What is wrong with a service's key: a reason, "no effect", or null where it is read. */
export function keyTrouble(key: string, value: unknown): { readonly refused: string } | "no effect" | null {
  if (known.has(key) || isLogMount(key, value)) return null;
  const reason = Object.hasOwn(refused, key) ? refused[key] : undefined;
  if (reason !== undefined) return value === null || value === false ? null : { refused: reason };
  return harmless.has(key) ? "no effect" : { refused: "is not known" };
}

/** Harbor's own templates mount the folders of its logs on `main`; here they are folders of the sandbox. */
const isLogMount = (key: string, value: unknown): boolean =>
  key === "volumes" &&
  Array.isArray(value) &&
  value.every((one) => /^\$\{(?:HOST|ENV)_[A-Z_]*LOGS_PATH\}:/u.test(String(one)));
