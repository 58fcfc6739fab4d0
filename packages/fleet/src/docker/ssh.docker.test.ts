/** A real daemon behind a real sshd. */
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestHost, type TestHost, workerImage } from "../../testing/docker-hosts.ts";
import { noSshServer, type SshServer, startSshServer } from "../../testing/ssh-server.ts";
import { LaunchFailure } from "../launch-failure.ts";
import { DockerLauncher } from "./docker-launcher.ts";
import { sshArguments } from "./ssh-agent.ts";

const signal = AbortSignal.timeout(170_000);
const spec: LaunchSpec = {
  ...{ workerId: "w1", claim: 1, runId: "r1", role: "colocated", device: "cpu", devices: ["place-1"] },
  ...{ memoryMb: 512, image: workerImage, key: "tml-0001-0001-0001", address: "127.0.0.1" },
  ...{ reads: [], checkpointFolder: null, modelFolder: null },
};

test("the host's name is never an option of ssh, nor is anything asked", () => {
  const args = sshArguments({ kind: "ssh", host: "h", port: 22, user: "u", keyFile: "/k", knownHostsFile: null });
  expect(args.slice(args.indexOf("--"))).toEqual(["--", "h", "docker", "system", "dial-stdio"]);
  expect(args).toContain("BatchMode=yes");
  expect(args).toContain("StrictHostKeyChecking=yes");
});

describe.skipIf(!process.env.ROLLDECK_TEST_DOCKER || noSshServer !== null)("a host behind ssh", () => {
  let host: TestHost;
  let ssh: SshServer;
  beforeAll(async () => {
    const started = await startTestHost(5, "socket");
    if ("missing" in started) throw new Error(started.missing);
    host = started;
    ssh = await startSshServer(host.daemon.socket);
  });
  afterAll(async () => {
    await ssh?.stop();
    await host?.stop();
  });
  const launcherOf = (endpoint: SshServer["endpoint"]) =>
    new DockerLauncher({ name: "remote", endpoint, fleet: "ssh", image: workerImage });

  test("starts a worker, follows its log, and ends it", async () => {
    const launcher = launcherOf(ssh.endpoint);
    expect((await launcher.facts(signal)).runtimes).toContain("runc");
    const { containerId } = await launcher.launch(spec, signal);
    const heard: string[] = [];
    const listening = (async () => {
      for await (const line of launcher.logs(containerId, { tail: 10, follow: true }, signal)) heard.push(line);
    })();
    await expect.poll(() => heard.some((line) => line.endsWith("ready")), { timeout: 20_000 }).toBe(true);
    expect(await launcher.seen(signal)).toMatchObject([{ containerId, workerId: "w1", state: "running" }]);
    await launcher.remove(containerId, 5_000, signal);
    await listening;
    expect(heard.some((line) => line.endsWith("stopping"))).toBe(true);
    expect(await launcher.seen(signal)).toEqual([]);
  });

  test("a host whose key is not the known one is not spoken to, and ssh's own words say why", async () => {
    const error = await launcherOf(ssh.impostor)
      .facts(signal)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LaunchFailure);
    if (!(error instanceof LaunchFailure)) throw error;
    expect(error.reason.code).toBe("unavailable");
    expect(error.reason.message).toMatch(/host key|identification/i);
    expect(error.reason.remedy).toContain("docker version");
  });
});
