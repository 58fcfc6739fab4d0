/** The control image builds and starts on a base that the test makes. The GPU worker's: e2e/fleet. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type DockerDaemon, findDockerDaemon } from "@rolldeck/sandbox/testing/docker-daemon";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeBaseImage } from "./base-image.ts";

const root = path.resolve(import.meta.dirname, "../..");
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
    const env = { ...process.env, DOCKER_HOST: `unix://${daemon.socket}` };
    makeBaseImage({ folder: path.join(folder, "root"), tag: base, env });
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
});
