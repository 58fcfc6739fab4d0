/** The launcher against two real daemons, one by socket and one by TCP with TLS: what it asks for, what is left, what it says. */
import { DockerEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { failureOf, untilUp } from "../../testing/ask-worker.ts";
import { makeTls, startTestHost, type TestHost } from "../../testing/docker-hosts.ts";
import { canary, describeLauncher } from "../../testing/launcher-conformance.ts";
import { type RecordingProxy, startRecordingProxy } from "../../testing/recording-proxy.ts";
import { rootImage, workerImage } from "../../testing/worker-image.ts";
import { labels, volumeName } from "./container-body.ts";
import { DockerLauncher } from "./docker-launcher.ts";
import { probeBody } from "./probe-gpus.ts";

const fleet = "test";
const signal = AbortSignal.timeout(170_000);
const spec = (over: Partial<LaunchSpec> = {}): LaunchSpec => ({
  ...{ workerId: "w1", claim: 1, runId: "r1", role: "colocated", device: "cpu", devices: ["place-1"] },
  ...{ memoryMb: 512, image: workerImage, key: canary, address: "127.0.0.1" },
  ...{ reads: [], checkpointFolder: null, modelFolder: null },
  ...over,
});
let hosts: TestHost[] = [];
let proxy: RecordingProxy;
let missing: string | null = null;

beforeAll(async () => {
  for (const [place, how] of (["socket", "tcp"] as const).entries()) {
    const host = await startTestHost(place, how);
    if ("missing" in host) {
      missing = host.missing;
      return;
    }
    hosts.push(host);
  }
  proxy = await startRecordingProxy(hosts[0]?.daemon.socket ?? "");
});
afterAll(async () => {
  await proxy?.stop();
  await Promise.all(hosts.map((host) => host.stop()));
  hosts = [];
});

const launcherOf = (endpoint: DockerEndpoint, image = workerImage): DockerLauncher =>
  new DockerLauncher({ name: "host-a", endpoint, fleet, image });
const host = (at: number): TestHost => {
  const found = hosts[at];
  if (found === undefined) throw new Error(missing ?? "no host");
  return found;
};
const count = async (one: TestHost): Promise<number> => (await one.docker.listContainers({ all: true })).length;

describe.skipIf(!process.env.ROLLDECK_TEST_DOCKER)("GPU workers as containers", () => {
  // By TCP with TLS; the others go by socket.
  describeLauncher({
    launcher: (of = fleet) =>
      new DockerLauncher({ name: "x", endpoint: host(1).endpoint, fleet: of, image: workerImage }),
    left: async () => count(host(1)),
    noGpu: { code: "no-gpu-runtime", message: /Docker can give containers none/ },
  });

  test("what a run saved goes with the run", async () => {
    const launcher = launcherOf(host(0).endpoint);
    const { containerId } = await launcher.launch(spec({ runId: "gone" }), signal);
    await launcher.remove(containerId, 5_000, signal);
    const names = async () => (await host(0).docker.listVolumes()).Volumes.map(({ Name }) => Name);
    expect(await names()).toContain(volumeName(fleet, "gone"));
    await launcher.forgetRun("gone", signal);
    await launcher.forgetRun("gone", signal);
    expect(await names()).not.toContain(volumeName(fleet, "gone"));
  });

  test("the container has no way to gain rights, a read-only root, one port on loopback, and its key in no label, name or log", async () => {
    const { docker, endpoint } = host(0);
    const launcher = launcherOf(endpoint);
    const { containerId, url } = await launcher.launch(spec(), signal);
    await untilUp(url);
    const made = await docker.getContainer(containerId).inspect();
    expect(made.HostConfig).toMatchObject({
      ...{ ReadonlyRootfs: true, Privileged: false, CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] },
      ...{ ShmSize: 1024 ** 3, Memory: 512 * 1024 ** 2, RestartPolicy: { Name: "no" }, Init: true },
    });
    expect(made.Config.User).toBe("10001:10001");
    expect(made.NetworkSettings.Ports).toEqual({ "8600/tcp": [{ HostIp: "127.0.0.1", HostPort: url.split(":")[2] }] });
    const { Env, ...config } = made.Config;
    expect(Env).toContain(`ROLLDECK_GPU_WORKER_KEY=${canary}`);
    expect(JSON.stringify([made.Name, config, made.Args, made.HostConfig])).not.toContain("canary");
    const lines: string[] = [];
    for await (const line of launcher.logs(containerId, { tail: 50, follow: false }, signal)) lines.push(line);
    expect(lines.join("\n")).toMatch(/^\S+Z ready$/m);
    expect(lines.join("\n")).not.toContain("canary");
    await launcher.remove(containerId, 5_000, signal);
  });

  test("what was left by a process that was killed while it looked for GPUs goes with the next look; another fleet's stays", async () => {
    const { docker, endpoint } = host(0);
    const left = async (of: string) => {
      const body = probeBody({ fleet: of, image: workerImage, gpuRuntime: "nvidia" });
      const { DeviceRequests: _, ...HostConfig } = body.HostConfig ?? {};
      return (await docker.createContainer({ ...body, HostConfig })).id;
    };
    const [own, others] = [await left(fleet), await left("another")];
    await launcherOf(endpoint).facts(signal);
    const there = (await docker.listContainers({ all: true })).map(({ Id }) => Id);
    expect([there.includes(own), there.includes(others)]).toEqual([false, true]);
    await docker.getContainer(others).remove({ force: true });
  });

  test("a GPU on a daemon that can give none ends as no-gpu-runtime, with host and remedy, and no container", async () => {
    const before = await count(host(0));
    const failure = await failureOf(
      launcherOf(host(0).endpoint).launch(spec({ device: "gpu", devices: ["GPU-1"] }), signal),
    );
    expect(failure.reason.code).toBe("no-gpu-runtime");
    expect(failure.reason.message).toContain("host-a");
    expect(failure.reason.remedy).toContain("NVIDIA Container Toolkit on host-a");
    expect(await count(host(0))).toBe(before);
  });

  test("what the daemon is asked for when a host says that it has GPUs, and what stays when it was wrong", async () => {
    const launcher = launcherOf({ kind: "socket", path: proxy.socket });
    const before = await count(host(0));
    // The same way as a launch goes where the daemon names the runtime; this one has none, so that it refuses to start.
    const devices = ["GPU-5d0b1c4e-7d5f-4b5e-9c3a-2f1e0d9c8b7a", "GPU-00000000-7d5f-4b5e-9c3a-2f1e0d9c8b7a"];
    const failure = await failureOf(
      launcher.launchWith(spec({ device: "gpu", devices, memoryMb: null, claim: 7 }), "nvidia", signal),
    );
    expect(failure.reason.code).toBe("no-gpu-runtime");
    expect(await count(host(0))).toBe(before);
    const [asked] = proxy.created.slice(-1);
    expect(asked?.name).toBe("rolldeck-fleet-w1-7");
    expect(asked?.body).toMatchObject({
      Image: workerImage,
      Labels: {
        [labels.fleet]: fleet,
        [labels.role]: "gpu-worker",
        [labels.worker]: "w1",
        [labels.claim]: "7",
        [labels.run]: "r1",
        [labels.devices]: devices.join(","),
      },
      HostConfig: {
        DeviceRequests: [{ Driver: "nvidia", Count: 0, DeviceIDs: devices, Capabilities: [["gpu"]], Options: {} }],
        ShmSize: 16 * 1024 ** 3,
        Ulimits: [
          { Name: "core", Soft: 0, Hard: 0 },
          { Name: "stack", Soft: 64 * 1024 ** 2, Hard: 64 * 1024 ** 2 },
          { Name: "memlock", Soft: -1, Hard: -1 },
        ],
        ...{ ReadonlyRootfs: true, CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"], Privileged: false },
        PortBindings: { "8600/tcp": [{ HostIp: "127.0.0.1", HostPort: "" }] },
      },
    });
    expect(asked?.body).not.toHaveProperty("HostConfig.Memory");
  });

  test("says what a host is, and that it has no GPU, without a probe", async () => {
    const before = proxy.created.length;
    const facts = await launcherOf({ kind: "socket", path: proxy.socket }).facts(signal);
    expect(facts).toMatchObject({ gpuRuntime: null, gpus: [], probeTrouble: null });
    expect(facts.runtimes).toContain("runc");
    expect(facts.cpus).toBeGreaterThan(0);
    expect(proxy.created.length).toBe(before);
  });

  test.each([
    ["an image that runs as root", { image: rootImage }, "root-image"],
    ["a folder that is not there", { checkpointFolder: "/nonexistent/checkpoints" }, "launch-failed"],
  ] as const)("%s is refused, and nothing is left", async (_, over, code) => {
    const before = await count(host(1));
    const failure = await failureOf(launcherOf(host(1).endpoint).launch(spec(over), signal));
    expect(failure.reason.code).toBe(code);
    expect(failure.reason.message).not.toContain("canary");
    expect(await count(host(1))).toBe(before);
  });

  test("a daemon that is away, or that is not the one whose certificate is known, is named with what to look at", async () => {
    const away = await failureOf(launcherOf({ kind: "socket", path: "/nonexistent/docker.sock" }).facts(signal));
    expect(away.reason).toMatchObject({ code: "unavailable" });
    expect(away.reason.remedy).toContain("/nonexistent/docker.sock");
    expect(away.retryable).toBe(true);
    const { endpoint } = host(1);
    if (endpoint.kind !== "tcp") throw new Error("host 1 is reached by TCP");
    const other = await makeTls();
    const foreign = DockerEndpoint.parse({ ...endpoint, certFolder: other.endpoint.certFolder });
    const failure = await failureOf(launcherOf(foreign).facts(signal));
    expect(failure.reason.code).toBe("unavailable");
    expect(failure.reason.message).toMatch(/certificate|verify|signature/i);
    other.remove();
  });
});
