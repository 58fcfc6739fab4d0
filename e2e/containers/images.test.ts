/** The compose file is valid, and both images build and start on a base that the test makes. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type DockerDaemon, findDockerDaemon } from "@rolldeck/sandbox/testing/docker-daemon";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeBaseImage, sitePackagesOf } from "./base-image.ts";

const root = path.resolve(import.meta.dirname, "../..");
const secrets = { POSTGRES_PASSWORD: "test-only", ROLLDECK_GPU_WORKER_KEY: "tml-test-only-test-only-test-only" };
const minutes = 60_000;
const base = "rolldeck-test-base";

let daemon: DockerDaemon;
let folder: string;

function docker(args: readonly string[], limitMs: number): { readonly status: number | null; readonly output: string } {
  const env = { ...process.env, DOCKER_HOST: `unix://${daemon.socket}`, DOCKER_BUILDKIT: "0" };
  const result = spawnSync("docker", args, {
    cwd: root,
    env,
    encoding: "utf8",
    timeout: limitMs,
    maxBuffer: 64 * 1024 * 1024,
  });
  return { status: result.status, output: `${result.stdout}${result.stderr}`.slice(-4000) };
}

describe("containers", () => {
  beforeAll(async () => {
    const found = await findDockerDaemon();
    if ("missing" in found) throw new Error(found.missing);
    daemon = found;
    folder = mkdtempSync(path.join(tmpdir(), "rolldeck-base-"));
    const sitePackages = sitePackagesOf(process.env.ROLLDECK_PYTHON ?? "python3");
    if (sitePackages === undefined)
      throw new Error("the base image needs packages of Python 3.11: run with ROLLDECK_PYTHON of that version");
    const env = { ...process.env, DOCKER_HOST: `unix://${daemon.socket}` };
    makeBaseImage({ folder: path.join(folder, "root"), tag: base, env, sitePackages });
  }, 6 * minutes);

  afterAll(async () => {
    await daemon?.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  }, minutes);

  it(
    "builds the control image, whose command explains itself",
    () => {
      const built = docker(
        [
          "build",
          "--network",
          "host",
          "--build-arg",
          `NODE_IMAGE=${base}`,
          "-f",
          "infra/docker/control.Dockerfile",
          "-t",
          "rolldeck-control-test",
          ".",
        ],
        8 * minutes,
      );
      expect(built.status, built.output).toBe(0);
      const help = docker(["run", "--rm", "--network", "none", "rolldeck-control-test", "--help"], minutes);
      expect(help.output).toContain("--database-url");
    },
    10 * minutes,
  );

  it(
    "builds the GPU worker image, which starts without network and answers",
    () => {
      const built = docker(
        [
          "build",
          "--network",
          "host",
          "--build-arg",
          `BASE_IMAGE=${base}`,
          "-f",
          "infra/docker/gpu-worker.Dockerfile",
          "-t",
          "rolldeck-gpu-worker-test",
          ".",
        ],
        8 * minutes,
      );
      expect(built.status, built.output).toBe(0);
      const asks = `
import json, os, subprocess, sys, time, urllib.request
worker = subprocess.Popen([sys.executable, "-m", "rolldeck_gpu_worker", "--host", "127.0.0.1", "--port", "8600", "--data-dir", "/data", "--model-roots", "/models"])
for _ in range(120):
    try:
        request = urllib.request.Request("http://127.0.0.1:8600/ext/v1/info", headers={"X-API-Key": os.environ["ROLLDECK_GPU_WORKER_KEY"]})
        print("info", json.load(urllib.request.urlopen(request))["device"])
        break
    except OSError:
        time.sleep(0.5)
worker.terminate()
worker.wait()
`;
      const flags = [
        "run",
        "--rm",
        "--network",
        "none",
        "--read-only",
        "--tmpfs",
        "/tmp",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "-v",
        "/data",
        "-e",
        `ROLLDECK_GPU_WORKER_KEY=${secrets.ROLLDECK_GPU_WORKER_KEY}`,
      ];
      const asked = docker(
        [...flags, "--entrypoint", "/venv/bin/python", "rolldeck-gpu-worker-test", "-c", asks],
        2 * minutes,
      );
      expect(asked.output).toContain("info cpu");
    },
    10 * minutes,
  );
});
