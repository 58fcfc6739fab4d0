import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { describe, expect, test } from "vitest";
import { containerBody, labels } from "./container-body.ts";

const spec: LaunchSpec = {
  workerId: "w1",
  claim: 3,
  runId: "r1",
  role: "trainer",
  device: "gpu",
  devices: ["GPU-11111111-aaaa", "GPU-22222222-bbbb"],
  memoryMb: null,
  image: "rolldeck-gpu-worker",
  key: "tml-canary-0001",
  address: "10.0.0.5",
  reads: [],
  checkpointFolder: null,
  modelFolder: null,
};
const scene = { fleet: "f", network: "n", gpuRuntime: "nvidia" } as const;

describe("containerBody", () => {
  test("asks for exactly the GPUs that it has leases of", () => {
    expect(containerBody(spec, scene).HostConfig?.DeviceRequests).toEqual([
      { Driver: "nvidia", Count: 0, DeviceIDs: spec.devices, Capabilities: [["gpu"]], Options: {} },
    ]);
    const cdi = containerBody(spec, { ...scene, gpuRuntime: "cdi" }).HostConfig?.DeviceRequests?.[0];
    expect(cdi?.DeviceIDs).toEqual(["nvidia.com/gpu=GPU-11111111-aaaa", "nvidia.com/gpu=GPU-22222222-bbbb"]);
  });

  test("asks for no GPU on processors, and bounds its memory", () => {
    const body = containerBody({ ...spec, device: "cpu", devices: ["cpu-1"], memoryMb: 512 }, scene);
    expect(body.HostConfig).toMatchObject({ DeviceRequests: [], Memory: 512 * 2 ** 20, MemorySwap: 512 * 2 ** 20 });
    expect(body.Cmd).toContain("cpu");
  });

  test("says the key once, in the environment", () => {
    const body = containerBody(spec, scene);
    expect(body.Env).toContain("ROLLDECK_GPU_WORKER_KEY=tml-canary-0001");
    const { Env: _, ...rest } = body;
    expect(JSON.stringify(rest)).not.toContain("canary");
    expect(body.Labels?.[labels.claim]).toBe("3");
  });

  test("a sampler is told to leave the files to the trainer, with which it shares the run's volume", () => {
    const [trainer, sampler] = [spec, { ...spec, workerId: "w2", role: "sampler" as const }].map((one) =>
      containerBody(one, scene),
    );
    expect(sampler?.Cmd).toContain("--sampler");
    expect(trainer?.Cmd).not.toContain("--sampler");
    expect(containerBody({ ...spec, role: "reader" }, scene).Cmd).toContain("--sampler");
    expect(sampler?.HostConfig?.Mounts).toEqual(trainer?.HostConfig?.Mounts);
  });

  test("reads what another run saved without a way to change it: its volume beside the run's own, or its part of the folder", () => {
    const body = containerBody({ ...spec, reads: ["r0"] }, scene);
    expect(body.Cmd?.join(" ")).toContain("--also-read /parents/r0");
    const mounts = body.HostConfig?.Mounts ?? [];
    expect(mounts.map(({ Source, Target, ReadOnly }) => [Source, Target, ReadOnly ?? false])).toEqual([
      ["rolldeck-fleet-f-r1", "/data", false],
      ["rolldeck-fleet-f-r0", "/parents/r0", true],
    ]);
    const shared = containerBody({ ...spec, reads: ["r0"], checkpointFolder: "/mnt/checkpoints" }, scene);
    expect(shared.Cmd?.join(" ")).toContain("--also-read /data/r0");
    expect(shared.HostConfig?.Mounts).toHaveLength(1);
  });

  test("takes a shared folder for checkpoints, one folder in it for each run", () => {
    const body = containerBody({ ...spec, checkpointFolder: "/mnt/checkpoints", modelFolder: "/mnt/models" }, scene);
    expect(body.HostConfig?.Mounts).toEqual([
      { Type: "bind", Source: "/mnt/checkpoints", Target: "/data" },
      { Type: "bind", Source: "/mnt/models", Target: "/host-models", ReadOnly: true },
    ]);
    expect(body.Cmd).toContain("/data/r1");
    expect(body.Cmd).toContain("/models:/host-models");
  });
});
