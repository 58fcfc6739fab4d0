/** `rolldeck doctor`: what this installation needs, what it has, and the fix for each thing that is missing. */
import { existsSync, statfsSync } from "node:fs";
import path from "node:path";
import { preparePython } from "../start/python-environment.ts";
import { readServerFile } from "../start/server-file.ts";
import { findModelServers } from "./find-model-servers.ts";
import { findSandboxes } from "./find-sandboxes.ts";
import type { Finding } from "./finding.ts";

const onPath = (command: string): boolean =>
  (process.env.PATH ?? "").split(":").some((folder) => existsSync(`${folder}/${command}`));

function findNode(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const fine = major > 20 || (major === 20 && minor >= 19);
  return {
    what: "Node",
    state: fine ? "ok" : "failed",
    detail: process.versions.node,
    fix: fine ? null : "install Node 20.19 or newer",
  };
}

function findSpace(folder: string): Finding {
  if (!existsSync(folder)) return findSpace(path.dirname(path.resolve(folder)));
  const { bavail, bsize } = statfsSync(folder);
  const gigabytes = (bavail * bsize) / 1e9;
  return {
    what: "Disk space",
    state: gigabytes < 2 ? "failed" : gigabytes < 8 ? "warning" : "ok",
    detail: `${gigabytes.toFixed(1)} GB free in ${folder}`,
    fix: gigabytes < 8 ? "free some space: PyTorch alone takes 1 to 5 GB" : null,
  };
}

async function findPython(root: string): Promise<Finding> {
  const venv = path.join(root, "infra/gpu-worker/.venv/.rolldeck-requirements");
  if (!process.env.ROLLDECK_PYTHON && !existsSync(venv)) {
    const has = ["python3", "python3.13", "python3.12", "python3.11", "python3.10"].some(onPath);
    return {
      what: "Python environment",
      state: has ? "warning" : "failed",
      detail: has ? "not installed yet" : "no python3 on the PATH",
      fix: has ? "`npm start` makes it" : "install Python 3.10 to 3.13 (Debian: apt install python3 python3-venv)",
    };
  }
  try {
    const python = await preparePython({
      root,
      withTests: false,
      torch: undefined,
      env: process.env,
      onProgress: () => undefined,
    });
    return { what: "Python environment", state: "ok", detail: python, fix: null };
  } catch (error) {
    return {
      what: "Python environment",
      state: "failed",
      detail: error instanceof Error ? error.message : String(error),
      fix: "see the message",
    };
  }
}

async function findServer(dataFolder: string): Promise<Finding> {
  const server = readServerFile(dataFolder);
  if (server === null) return { what: "Server", state: "warning", detail: "not running", fix: "`npm start`" };
  try {
    const response = await fetch(`${server.url}/healthz`, { signal: AbortSignal.timeout(3_000) });
    const fine = response.ok;
    return {
      what: "Server",
      state: fine ? "ok" : "failed",
      detail: `${server.url} answers ${response.status}`,
      fix: fine ? null : `read ${path.join(dataFolder, "logs/api.log")}`,
    };
  } catch (error) {
    return {
      what: "Server",
      state: "failed",
      detail: `${server.url} does not answer: ${error instanceof Error ? error.message : String(error)}`,
      fix: `read ${path.join(dataFolder, "logs/api.log")}`,
    };
  }
}

const optional = (what: string, command: string, use: string, packages: string): Finding =>
  onPath(command)
    ? { what, state: "ok", detail: `${command} is there`, fix: null }
    : { what, state: "warning", detail: `${command} is missing; ${use}`, fix: `sudo apt-get install -y ${packages}` };

/** Every finding, in the order in which a person would fix them. */
export async function examine(root: string, dataFolder: string): Promise<Finding[]> {
  return [
    findNode(),
    findSpace(dataFolder),
    await findPython(root),
    await findServer(dataFolder),
    optional("Chromium", "chromium", "only the browser walks of `npm test` need it", "chromium"),
    optional("Redis", "redis-server", "only `npm test` and --redis-url need one", "redis-server"),
    ...(await findModelServers(process.env)),
    ...(await findSandboxes(path.join(dataFolder, "sandboxes"))),
  ];
}
