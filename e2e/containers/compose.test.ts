/** `docker compose config` (or Debian's `docker-compose config`) accepts the compose file, and refuses it without its secrets. */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { describe, expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const secrets = { POSTGRES_PASSWORD: "test-only", ROLLDECK_GPU_WORKER_KEY: "tml-test-only-test-only-test-only" };
const tools = [["docker", "compose"], ["docker-compose"]] as const;
const tool = tools.find(
  ([command, ...rest]) => spawnSync(command, [...rest, "version"], { stdio: "ignore" }).status === 0,
);

function config(env: Record<string, string>) {
  if (tool === undefined) throw new Error("no compose tool");
  const [command, ...rest] = tool;
  return spawnSync(command, [...rest, "config"], {
    cwd: root,
    env: { PATH: process.env.PATH ?? "", ...env },
    encoding: "utf8",
  });
}

describe.runIf(tool !== undefined)("docker-compose.yml", () => {
  it("is valid and names the five services", () => {
    const result = config(secrets);
    expect(result.status, result.stderr).toBe(0);
    for (const service of ["postgres", "valkey", "api", "worker", "gpu-worker"])
      expect(result.stdout).toMatch(new RegExp(`^  ${service}:`, "m"));
  });

  it("publishes the API on loopback only, and no store or GPU worker at all", () => {
    const published = [...config(secrets).stdout.matchAll(/published: "?(\d+)|- (127\.0\.0\.1:\d+:\d+)/g)];
    expect(published.length).toBe(1);
  });

  it("refuses to start without its secrets, naming them", () => {
    const result = config({});
    expect(result.status).not.toBe(0);
    expect(result.stderr).toMatch(/POSTGRES_PASSWORD|ROLLDECK_GPU_WORKER_KEY/);
  });
});
