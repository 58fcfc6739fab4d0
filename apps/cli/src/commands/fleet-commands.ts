/** `rolldeck fleet …`: hosts of GPU workers, the workers on them, and their logs. */
import type { Fleet, FleetHostInfo } from "@rolldeck/contracts/api/fleet";
import { type DockerEndpoint, type HostEndpoint, RayEndpoint } from "@rolldeck/contracts/host-endpoint";
import { type Command, InvalidArgumentError } from "commander";
import { CommandFailure } from "./command-failure.ts";
import { type ConnectionFlags, connect, withServer } from "./connection.ts";
import { plain, print, table } from "./output.ts";

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}
interface HostFlags extends Flags {
  readonly docker?: string;
  readonly kubernetes?: string;
  readonly ray?: string;
  readonly process?: boolean;
  readonly tokenFile?: string;
  readonly entrypoint?: string;
  readonly kubeconfig?: string;
  readonly nodes?: string;
  readonly claim?: string;
  readonly certs?: string;
  readonly key?: string;
  readonly knownHosts?: string;
  readonly address?: string;
  readonly cpuPlaces?: number;
  readonly cpuMemory?: number;
  readonly image?: string;
  readonly models?: string;
  readonly checkpoints?: string;
  readonly share?: string;
}

export function addFleetCommands(program: Command): void {
  const fleet = program.command("fleet").description("Hosts of GPU workers, and the workers on them");
  const command = (text: string): Command => withServer(fleet.command(text)).option("--json", "print JSON");
  command("list")
    .description("List hosts with their GPUs, and the GPU workers of runs")
    .action(async (flags: Flags) => {
      const state = await connect(flags).rolldeck.getFleet();
      print(flags.json === true, state, () => `${hostsTable(state.hosts)}\n\n${workersTable(state)}`);
    });
  addHost(command);
  command("drain <host>")
    .description("Let a host take no more workers; what is there stays until its run is over")
    .option("--undo", "let it take workers again")
    .action(async (name: string, flags: Flags & { undo?: boolean }) => {
      const state = await connect(flags).rolldeck.drainFleetHost({ name, draining: flags.undo !== true });
      print(flags.json === true, state, () => hostsTable(state.hosts));
    });
  command("remove-host <host>")
    .description("Forget a host that has no workers")
    .action(async (name: string, flags: Flags) => {
      const state = await connect(flags).rolldeck.removeFleetHost(name);
      print(flags.json === true, state, () => `${name} is forgotten`);
    });
  command("logs <worker>")
    .description("Print the last lines of a GPU worker's log")
    .option("-n, --lines <n>", "how many", count, 200)
    .action(async (workerId: string, flags: Flags & { lines: number }) => {
      const log = await connect(flags).rolldeck.readFleetLog(workerId, { lines: flags.lines });
      print(flags.json === true, log, () => log.lines.map(plain).join("\n"));
    });
}

function addHost(command: (text: string) => Command): void {
  command("add-host <name>")
    .description(
      "Register a host by its Docker endpoint, a namespace of a Kubernetes cluster, a Ray cluster, or this machine",
    )
    .option("--docker <url>", "unix:///path, tcp://host:port (with --certs) or ssh://user@host:port")
    .option("--kubernetes <context/namespace>", "a context of --kubeconfig (empty: its current one) and a namespace")
    .option("--kubeconfig <file>", "file of this server that leads to the cluster")
    .option("--nodes <labels>", "nodes that workers may be on, as label=value,label=value (default: all)")
    .option("--claim <name>", "persistent volume claim of the namespace for checkpoints")
    .option("--ray <url>", "dashboard of a Ray cluster by its private address: http://10.0.0.5:8265")
    .option("--token-file <file>", "file of this server with the token of the Ray cluster, where it wants one")
    .option(
      "--entrypoint <command>",
      "what starts a worker on a node of Ray (default: the keeper of the nodes' python3)",
    )
    .option("--process", "workers as processes of the machine that runs `npm start`, for one without Docker")
    .option("--certs <folder>", "folder of this server with ca.pem, cert.pem and key.pem, for tcp://")
    .option("--key <file>", "private key for ssh:// (default: what ssh uses by itself)")
    .option("--known-hosts <file>", "where the host's own key is, for ssh:// (default: the account's)")
    .option("--address <address>", "loopback or private address at which its workers are reached (default 127.0.0.1)")
    .option("--cpu-places <n>", "workers without a GPU that it may run at once", count)
    .option("--cpu-memory <mb>", "memory that each of these may use", count)
    .option("--image <name>", "image of its workers (default rolldeck-gpu-worker)")
    .option("--models <folder>", "folder of the host with model folders")
    .option(
      "--checkpoints <folder>",
      "folder of the host for checkpoints (default: a volume per run; a Ray cluster needs one)",
    )
    .option("--share <name>", "name of the network mount behind --checkpoints, the same for all hosts that have it")
    .action(async (name: string, flags: HostFlags) => {
      const state = await connect(flags).rolldeck.addFleetHost({
        name,
        endpoint: endpointOf(flags),
        address: flags.address,
        cpuPlaces: flags.cpuPlaces,
        cpuMemoryMb: flags.cpuMemory,
        image: flags.image,
        modelFolder: flags.models,
        checkpointFolder: flags.checkpoints,
        checkpointShare: flags.share,
      });
      print(flags.json === true, state, () => hostsTable(state.hosts));
    });
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError("a whole number");
  return value;
}

type EndpointFlags = Pick<
  HostFlags,
  | "docker"
  | "certs"
  | "key"
  | "knownHosts"
  | "kubernetes"
  | "kubeconfig"
  | "nodes"
  | "claim"
  | "ray"
  | "tokenFile"
  | "entrypoint"
  | "process"
>;

const kinds = ["docker", "kubernetes", "ray", "process"] as const;

/** @throws CommandFailure that names the flag */
export function endpointOf(flags: EndpointFlags): HostEndpoint {
  const given = kinds.filter((kind) => flags[kind] !== undefined && flags[kind] !== false);
  const { docker, kubernetes, ray } = flags;
  if (given.length !== 1) throw new CommandFailure("a host is one of --docker, --kubernetes, --ray and --process");
  if (docker !== undefined) return dockerOf({ ...flags, docker });
  if (ray !== undefined) return rayOf({ ...flags, ray });
  return kubernetes === undefined ? { kind: "process" } : kubernetesOf({ ...flags, kubernetes });
}

function rayOf(flags: EndpointFlags & { readonly ray: string }): HostEndpoint {
  const { ray: url, tokenFile = null, entrypoint } = flags;
  const endpoint = RayEndpoint.safeParse({ kind: "ray", url, tokenFile, entrypoint });
  if (endpoint.success) return endpoint.data;
  const flagOf: Readonly<Record<string, string>> = {
    url: "--ray",
    tokenFile: "--token-file",
    entrypoint: "--entrypoint",
  };
  const [issue] = endpoint.error.issues;
  throw new CommandFailure(`${flagOf[String(issue?.path[0])] ?? "--ray"} ${issue?.message}`);
}

function kubernetesOf(flags: EndpointFlags & { readonly kubernetes: string }): HostEndpoint {
  const [, context = "", namespace] = /^(.*\/)?([^/]+)$/.exec(flags.kubernetes) ?? [];
  if (namespace === undefined) throw new CommandFailure("--kubernetes must look like context/namespace");
  if (flags.kubeconfig === undefined) throw new CommandFailure("--kubeconfig names the file that leads to the cluster");
  return {
    ...{ kind: "kubernetes", kubeconfig: flags.kubeconfig, context: context.slice(0, -1) || null, namespace },
    ...{ nodeSelector: selectorOf(flags.nodes ?? ""), checkpointClaim: flags.claim ?? null },
  };
}

function selectorOf(text: string): Record<string, string> {
  const terms = text.split(",").filter((term) => term !== "");
  return Object.fromEntries(
    terms.map((term) => {
      const [, name, value] = /^([^=]+)=([^=]*)$/.exec(term) ?? [];
      if (name === undefined || value === undefined) throw new CommandFailure(`--nodes: ${term} is not label=value`);
      return [name, value];
    }),
  );
}

function dockerOf(flags: EndpointFlags & { readonly docker: string }): DockerEndpoint {
  const wrong = "--docker must look like unix:///var/run/docker.sock, tcp://10.0.0.5:2376 or ssh://user@10.0.0.5";
  const url = URL.canParse(flags.docker) ? new URL(flags.docker) : null;
  if (url === null) throw new CommandFailure(wrong);
  if (url.protocol === "unix:") return { kind: "socket", path: decodeURIComponent(url.pathname) };
  // Brackets are a URL's way to write an address.
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (url.protocol === "tcp:") {
    if (flags.certs === undefined)
      throw new CommandFailure(
        "--certs names the folder with ca.pem, cert.pem and key.pem: a daemon without TLS is not used",
      );
    return { kind: "tcp", host, port: Number(url.port || 2376), certFolder: flags.certs };
  }
  if (url.protocol !== "ssh:") throw new CommandFailure(wrong);
  if (url.password !== "") throw new CommandFailure("--docker may hold no password: ssh gets in with a key (--key)");
  return {
    ...{ kind: "ssh", host, port: Number(url.port || 22), user: url.username || null },
    ...{ keyFile: flags.key ?? null, knownHostsFile: flags.knownHosts ?? null },
  };
}

function hostsTable(hosts: readonly FleetHostInfo[]): string {
  if (hosts.length === 0) return "no host is registered: rolldeck fleet add-host";
  const rows = hosts.map((host) => {
    const gpus = host.devices.filter((device) => device.kind === "gpu" && device.present);
    const places = host.devices.filter((device) => device.kind === "cpu" && device.present);
    const free = (of: typeof gpus): string =>
      `${of.filter((device) => device.workerId === null).length} of ${of.length}`;
    const models = [...new Set(gpus.map((gpu) => gpu.model))].join(", ");
    const trouble = host.trouble === null ? "" : plain(host.trouble.message);
    return [host.name, host.endpoint, host.state, free(gpus), plain(models), free(places), trouble];
  });
  return table(["host", "endpoint", "state", "GPUs free", "model", "places free", "trouble"], rows);
}

function workersTable({ workers }: Fleet): string {
  if (workers.length === 0) return "no run has workers here";
  const rows = workers.map((worker) => [
    worker.workerId,
    plain(worker.runName),
    worker.role === "sampler" ? `sampler ${worker.replica + 1}` : worker.role,
    worker.state,
    worker.host ?? "",
    worker.deviceIds.join(" "),
    worker.restarts,
    worker.reason === null ? "" : plain(worker.reason.message),
  ]);
  return table(["worker", "run", "role", "state", "host", "devices", "restarts", "why"], rows);
}
