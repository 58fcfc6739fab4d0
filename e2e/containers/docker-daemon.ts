/** A Docker daemon for the tests: the one that answers, else one of our own (root only) on a socket in a temporary folder. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

export interface DockerDaemon {
  /** Value for DOCKER_HOST. */
  readonly host: string | undefined;
  stop(): Promise<void>;
}

const answers = (host: string | undefined): boolean =>
  spawnSync("docker", ["info"], {
    env: { ...process.env, ...(host === undefined ? {} : { DOCKER_HOST: host }) },
    stdio: "ignore",
    timeout: 20_000,
  }).status === 0;

/** Null with a reason when there is none and none can be started. */
export async function findDockerDaemon(): Promise<DockerDaemon | { readonly missing: string }> {
  if (answers(undefined)) return { host: undefined, stop: async () => undefined };
  const dockerd = ["/usr/sbin/dockerd", "/usr/bin/dockerd"].find((file) => existsSync(file));
  if (dockerd === undefined)
    return { missing: "no Docker daemon answers and dockerd is not installed (sudo apt-get install -y docker.io)" };
  if (process.getuid?.() !== 0) return { missing: "no Docker daemon answers, and only root may start one" };
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-docker-"));
  mkdirSync(path.join(folder, "data"));
  const host = `unix://${folder}/docker.sock`;
  const flags = [
    "--data-root",
    `${folder}/data`,
    "--exec-root",
    `${folder}/exec`,
    "--pidfile",
    `${folder}/pid`,
    "-H",
    host,
  ];
  const child = spawn(dockerd, flags, { stdio: "ignore" });
  for (let tries = 0; tries < 60 && child.exitCode === null; tries += 1) {
    if (answers(host)) return { host, stop: () => stopDaemon(child, folder) };
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  await stopDaemon(child, folder);
  return { missing: "dockerd did not come up here" };
}

async function stopDaemon(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null) {
    const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
    child.kill("SIGTERM");
    await gone;
  }
  // The daemon leaves mounts behind (network namespaces, overlays), deepest last.
  const mounts = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((point) => point.startsWith(`${folder}/`));
  for (const point of mounts.reverse()) spawnSync("umount", ["--lazy", point]);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 500 });
}
