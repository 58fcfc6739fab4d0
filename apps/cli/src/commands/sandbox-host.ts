/** `rolldeck sandbox-host` and `rolldeck sandbox-server`: a machine that offers sandboxes, and the gateway it joins. */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { type Command, InvalidArgumentError, Option } from "commander";
import { CommandFailure } from "./command-failure.ts";
import { print, table } from "./output.ts";

interface HostFlags {
  readonly server: string;
  readonly tokenFile: string;
  readonly ca?: string;
  readonly runtime: "docker" | "process";
  readonly max: number;
  readonly memoryMb?: number;
  readonly name?: string;
  readonly label: Readonly<Record<string, string>>;
  readonly stateFolder: string;
}

interface GatewayFlags {
  readonly server: string;
  readonly tokenFile: string;
  readonly ca?: string;
  readonly json?: boolean;
}

const dataFolder = (name: string): string =>
  path.join(process.env.XDG_DATA_HOME ?? path.join(homedir(), ".local/share"), "rolldeck", name);

export function addSandboxCommands(program: Command): void {
  program
    .command("sandbox-host")
    .description("Offer this machine's sandboxes to a sandbox server, until Ctrl-C")
    .requiredOption("--server <url>", "address of the sandbox server")
    .requiredOption("--token-file <file>", "file with the host token")
    .option("--ca <file>", "certificates that the server is trusted by")
    .addOption(new Option("--runtime <name>", "where sandboxes open").choices(["docker", "process"]).default("docker"))
    .option("--max <n>", "sandboxes at once", whole, 64)
    .option("--memory-mb <n>", "memory of all sandboxes together (default: this machine's)", whole)
    .option("--name <name>", "shown in the server's lists (default: this machine's host name)")
    .option("--label <key=value>", "shown in the server's lists; may be repeated", addLabel, {})
    .option("--state-folder <folder>", "what is kept over restarts", dataFolder("sandbox-host"))
    .action(runHost);
  const server = program
    .command("sandbox-server")
    .description("Run the gateway that sandbox hosts join; `--help` after `run` lists its flags");
  server
    .command("run", { isDefault: true })
    .description("Run the gateway until Ctrl-C")
    .option("--port <n>", "port to listen on (default 4480)")
    .option("--host <address>", "address to listen on (default 127.0.0.1; others need TLS)")
    .option(
      "--token-file <file>",
      "client and host tokens; made when it is not there",
      dataFolder("sandbox-server/tokens"),
    )
    .option("--tls-cert <file>", "certificate, PEM")
    .option("--tls-key <file>", "its key, PEM")
    .option("--insecure", "listen beyond this machine without TLS: behind a proxy that has it")
    .option("--state-folder <folder>", "what is kept over restarts", dataFolder("sandbox-server"))
    .option("--starts-per-second <n>", "sandboxes started in a second, all hosts together (default 20)")
    .option("--starts-per-host <n>", "the same of one host (default 8)")
    .option("--max-queued <n>", "openings that may wait (default 10000)")
    .option("--max-ready <n>", "opened ahead of each kind at most (default 8; 0 = none)")
    .option("--lost-after <seconds>", "a host away so long is lost (default 30)")
    .action(runServer);
  for (const [verb, what] of [
    ["drain", "Open nothing new on a host; what is there finishes"],
    ["resume", "Open on a drained host again"],
  ] as const) {
    gatewayOptions(server.command(`${verb} <host>`).description(what)).action((host: string, flags: GatewayFlags) =>
      withGateway(flags, async (gateway, signal) => {
        await gateway.drain(host, verb === "drain", signal);
        print(flags.json === true, { host, draining: verb === "drain" }, () => `${host}: ${verb} asked for`);
      }),
    );
  }
  gatewayOptions(server.command("status").description("Show hosts, sandboxes and the queue")).action(showStatus);
}

const gatewayOptions = (command: Command): Command =>
  command
    .option("--server <url>", "address of the sandbox server", "http://127.0.0.1:4480")
    .option("--token-file <file>", "file with the client token", dataFolder("sandbox-server/tokens"))
    .option("--ca <file>", "certificates that the server is trusted by")
    .option("--json", "print JSON");

async function runHost(flags: HostFlags): Promise<void> {
  const { runSandboxHost } = await import("@rolldeck/sandbox/host/run-sandbox-host");
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => stop.abort(new Error("stopped")));
  const { server, tokenFile, runtime, max, stateFolder, label } = flags;
  await runSandboxHost(
    {
      ...{ server, tokenFile, runtime, max, stateFolder, labels: label },
      caFile: flags.ca ?? null,
      memoryMb: flags.memoryMb ?? null,
      name: flags.name ?? null,
      variables: process.env,
      say: (message) => process.stdout.write(`sandbox-host: ${message}\n`),
    },
    stop.signal,
  );
}

/** In this terminal: its output and signals are the server's. */
async function runServer(flags: Readonly<Record<string, string | boolean>>): Promise<void> {
  const root = process.env.ROLLDECK_ROOT ?? process.cwd();
  const { buildServers } = await import(pathToFileURL(path.join(root, "apps/cli/bin/build-servers.mjs")).href);
  await buildServers(["sandbox-server"]);
  const args = Object.entries(flags).flatMap(([name, value]) => {
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === true ? [flag] : [flag, String(value)];
  });
  const main = path.join(root, "apps/sandbox-server/dist/main.mjs");
  const child = spawn(process.execPath, ["--enable-source-maps", main, ...args], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => child.kill(name));
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

type Gateway = import("@rolldeck/sandbox/remote/remote-runtime").RemoteRuntime;

async function withGateway(
  flags: GatewayFlags,
  work: (gateway: Gateway, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { RemoteRuntime } = await import("@rolldeck/sandbox/remote/remote-runtime");
  const { readToken } = await import("@rolldeck/sandbox/host/token-file");
  const gateway = new RemoteRuntime({
    address: async () => ({
      url: flags.server,
      token: await readToken(flags.tokenFile, "client"),
      ca: flags.ca === undefined ? null : await readFile(flags.ca, "utf8"),
    }),
    deployment: "rolldeck-cli",
    onTrouble: () => undefined,
  });
  try {
    await work(gateway, AbortSignal.timeout(30_000));
  } finally {
    await gateway.disconnect();
  }
}

function showStatus(flags: GatewayFlags): Promise<void> {
  return withGateway(flags, async (gateway, signal) => {
    const status = await gateway.status(signal);
    print(flags.json === true, status, () =>
      [
        table(
          ["host", "state", "runtime", "open", "opening", "warm", "of"],
          status.hosts.map((host) => [
            host.name,
            host.draining ? `${host.state}, draining` : host.state,
            host.runtime,
            ...[host.open, host.opening, host.warm, host.maxSandboxes].map(String),
          ]),
        ),
        `${status.queued} waiting`,
      ].join("\n"),
    );
    if (status.hosts.length === 0) throw new CommandFailure("no host has joined");
  });
}

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("must be a whole number above 0");
  return value;
}

function addLabel(text: string, labels: Readonly<Record<string, string>>): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  if (key === undefined || value === undefined) throw new InvalidArgumentError("must be key=value");
  return { ...labels, [key]: value };
}
