/**
 * Docker daemons as hosts of a fleet, each with folders, networks and, where it is asked for, a TLS port of its own. Containers can be
 * published on loopback; nothing of the machine's firewall is changed.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DockerEndpoint } from "@rolldeck/contracts/host-endpoint";
import { type MissingDocker, type OwnDockerDaemon, startDockerDaemon } from "@rolldeck/sandbox/testing/docker-daemon";
import Docker from "dockerode";
import { makeWorkerImage, workerImage } from "./worker-image.ts";

export { workerImage };

export interface TestHost {
  readonly endpoint: DockerEndpoint;
  readonly daemon: OwnDockerDaemon;
  /** Past the endpoint. */
  readonly docker: Docker;
  stop(): Promise<void>;
}

/** Two hosts of one test file must not share addresses, nor those of two files that run beside each other. */
const networkOf = (place: number): string => `10.${190 + (process.pid % 40)}.${place * 16}.0/20`;

/**
 * @param place 0 to 15, another one for each host of this process
 * @returns what is missing where no daemon can be started
 */
export async function startTestHost(place: number, how: "socket" | "tcp"): Promise<TestHost | MissingDocker> {
  const network = ["--userland-proxy=true", "--default-address-pool", `base=${networkOf(place)},size=24`];
  const tls = how === "tcp" ? await makeTls() : null;
  const daemon = await startDockerDaemon([...network, ...(tls?.flags ?? [])]);
  if ("missing" in daemon) {
    tls?.remove();
    return daemon;
  }
  const docker = new Docker({ socketPath: daemon.socket });
  await makeWorkerImage(docker);
  const stop = async (): Promise<void> => {
    await leaveNothing(docker);
    await daemon.stop();
    tls?.remove();
  };
  return { endpoint: tls?.endpoint ?? { kind: "socket", path: daemon.socket }, daemon, docker, stop };
}

/** A daemon that ends leaves the bridges of its networks to the machine. */
async function leaveNothing(docker: Docker): Promise<void> {
  for (const { Id } of await docker.listContainers({ all: true }))
    await docker.getContainer(Id).remove({ force: true, v: true });
  for (const { Id, Driver } of await docker.listNetworks())
    if (Driver === "bridge") await docker.getNetwork(Id).remove();
}

interface TestTls {
  readonly endpoint: Extract<DockerEndpoint, { kind: "tcp" }>;
  readonly flags: readonly string[];
  remove(): void;
}

/** A certificate authority, a server's certificate for 127.0.0.1 and a client's; and a free port. */
export async function makeTls(): Promise<TestTls> {
  const folder = mkdtempSync(join(tmpdir(), "rolldeck-tls-"));
  const port = await freePort();
  const at = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): void => void execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", "-x509", ...curve, "-keyout", "ca-key.pem", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test");
  writeFileSync(at("server.ext"), "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n");
  writeFileSync(at("client.ext"), "extendedKeyUsage=clientAuth\n");
  mkdirSync(at("client"));
  for (const [name, to] of [
    ["server", "."],
    ["client", "client"],
  ] as const) {
    const [key, cert] = to === "." ? ["server-key.pem", "server-cert.pem"] : ["client/key.pem", "client/cert.pem"];
    openssl("req", ...curve, "-keyout", key, "-out", `${name}.csr`, "-subj", `/CN=${name}`);
    const signed = ["x509", "-req", "-in", `${name}.csr`, "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial"];
    openssl(...signed, "-out", cert, "-days", "2", "-extfile", `${name}.ext`);
  }
  execFileSync("cp", [at("ca.pem"), at("client/ca.pem")]);
  const server = [
    `--tlscacert=${at("ca.pem")}`,
    `--tlscert=${at("server-cert.pem")}`,
    `--tlskey=${at("server-key.pem")}`,
  ];
  return {
    endpoint: { kind: "tcp", host: "127.0.0.1", port, certFolder: at("client") },
    flags: ["-H", `tcp://127.0.0.1:${port}`, "--tlsverify", ...server],
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        typeof address === "object" && address ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
