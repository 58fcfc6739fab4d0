/** A real sshd on loopback that lets one key run `docker system dial-stdio` against one daemon, and nothing else. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import type { DockerEndpoint } from "@rolldeck/contracts/host-endpoint";
import { freePort } from "./docker-hosts.ts";

export interface SshServer {
  readonly endpoint: Extract<DockerEndpoint, { kind: "ssh" }>;
  /** The same host, with another host key known for it. */
  readonly impostor: Extract<DockerEndpoint, { kind: "ssh" }>;
  stop(): Promise<void>;
}

const program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].find((file) => existsSync(file));
/** Why there can be none here; null where there can. */
export const noSshServer: string | null =
  program === undefined
    ? "sshd is not installed (sudo apt-get install -y openssh-server)"
    : process.getuid?.() === 0
      ? null
      : "only root may start sshd";

export async function startSshServer(dockerSocket: string): Promise<SshServer> {
  const folder = mkdtempSync(join(tmpdir(), "rolldeck-ssh-"));
  const at = (name: string): string => join(folder, name);
  for (const name of ["host-key", "client-key", "other-key"])
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at(name)]);
  const port = await freePort();
  const command = `command="docker -H unix://${dockerSocket} system dial-stdio",restrict`;
  writeFileSync(at("authorized"), `${command} ${readFileSync(at("client-key.pub"), "utf8")}`, { mode: 0o600 });
  for (const name of ["host-key", "other-key"])
    writeFileSync(at(`known-${name}`), `[127.0.0.1]:${port} ${readFileSync(at(`${name}.pub`), "utf8")}`);
  const config = [
    ...[
      `Port ${port}`,
      "ListenAddress 127.0.0.1",
      `HostKey ${at("host-key")}`,
      `AuthorizedKeysFile ${at("authorized")}`,
    ],
    ...[
      "PidFile none",
      "UsePAM no",
      "StrictModes no",
      "PasswordAuthentication no",
      "PermitRootLogin forced-commands-only",
    ],
  ];
  writeFileSync(at("config"), `${config.join("\n")}\n`);
  mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  const server = spawn(program ?? "", ["-D", "-e", "-f", at("config")], { stdio: "ignore" });
  await listens(port, server);
  const endpoint = (known: string): SshServer["endpoint"] => ({
    ...{ kind: "ssh", host: "127.0.0.1", port, user: userInfo().username },
    ...{ keyFile: at("client-key"), knownHostsFile: at(known) },
  });
  return {
    endpoint: endpoint("known-host-key"),
    impostor: endpoint("known-other-key"),
    stop: async () => {
      const ended = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function listens(port: number, server: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 100 && server.exitCode === null; tries += 1) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).once("error", () => resolve(false));
      socket.once("connect", () => socket.end());
    });
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("sshd did not come up");
}
