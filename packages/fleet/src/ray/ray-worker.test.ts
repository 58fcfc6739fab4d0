import { RayEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { describe, expect, test } from "vitest";
import { RayJobAnswer, type RayJobStatus } from "./ray-answers.ts";
import { factsOf, isOfFleet, saidUrl, seenWorker, submissionId, workerJob, workerUrl } from "./ray-worker.ts";

const endpoint = RayEndpoint.parse({ kind: "ray", url: "http://10.0.0.5:8265" });
const scene = { fleet: "f", host: "ray", endpoint, port: 20_001 };
const spec: LaunchSpec = {
  ...{ workerId: "w1", claim: 3, runId: "r1", role: "colocated", device: "gpu", devices: ["ray-gpu-0", "ray-gpu-4"] },
  ...{ memoryMb: null, image: "unused", key: "tml-canary-0001", address: "127.0.0.1" },
  ...{ reads: [], checkpointFolder: "/mnt/check points/o'ne", modelFolder: "/mnt/models" },
};
const job = (over: object): RayJobStatus =>
  RayJobAnswer.parse({
    ...{ submission_id: "rolldeck-f-w1-3", status: "RUNNING", driver_agent_http_address: "http://10.0.0.9:52365" },
    metadata: workerJob(spec, scene).metadata,
    ...over,
  });

describe("what is submitted", () => {
  test("asks for as many GPUs as it holds leases of, quotes what is put into a command, and says the key in the environment alone", () => {
    const { entrypoint, entrypointResources, runtimeEnv, ...rest } = workerJob(spec, scene);
    expect(entrypoint).toBe(
      `exec python3 -m rolldeck_gpu_worker.keeper --towards "$RAY_ADDRESS" -- --port 20001 --data-dir '/mnt/check points/o'\\''ne/r1' --model-roots /mnt/models --device cuda`,
    );
    expect(entrypointResources).toEqual({ gpus: 2 });
    expect(runtimeEnv).toMatchObject({ env_vars: { ROLLDECK_GPU_WORKER_KEY: "tml-canary-0001" } });
    expect(JSON.stringify([entrypoint, rest])).not.toContain("canary");
  });

  test("bounds the memory of one without a GPU, and tells a sampler to leave the files to the trainer", () => {
    const made = workerJob({ ...spec, device: "cpu", devices: ["p"], memoryMb: 512, role: "sampler" }, scene);
    expect(made.entrypoint).toContain("--memory-mb 512 -- --port");
    expect(made.entrypoint).toMatch(/--device cpu --sampler$/);
    const fork = workerJob({ ...spec, reads: ["r0"] }, scene);
    expect(fork.entrypoint).toMatch(/--also-read '\/mnt\/check points\/o'\\''ne\/r0'$/);
    expect(made.entrypointResources).toEqual({ cpus: 1 });
  });

  test("is named by fleet, worker and claim; ids that can't be a name are refused", () => {
    expect(submissionId("f", spec)).toBe("rolldeck-f-w1-3");
    expect(() => submissionId("f", { workerId: "../x", claim: 1 })).toThrow("none that a Ray job can have");
    expect(() => workerJob({ ...spec, checkpointFolder: null }, scene)).toThrow("which all nodes share");
  });
});

describe("what is seen", () => {
  test("is another's where the fleet's mark is another one, or none", () => {
    expect(seenWorker(job({}), "f", endpoint)).toEqual({
      ...{ containerId: "rolldeck-f-w1-3", workerId: "w1", claim: 3, devices: ["ray-gpu-0", "ray-gpu-4"] },
      ...{ state: "running", url: "http://10.0.0.9:20001", exitCode: null, outOfMemory: false },
    });
    expect(seenWorker(job({}), "g", endpoint)).toBe(null);
    expect(seenWorker(job({ metadata: null }), "f", endpoint)).toBe(null);
  });

  test("one that lost its marks when it ended is known by its name, and is no worker", () => {
    const ghost = job({ status: "FAILED", metadata: null });
    expect(isOfFleet(ghost, "f")).toBe(true);
    expect(seenWorker(ghost, "f", endpoint)).toBe(null);
    expect(isOfFleet(ghost, "g")).toBe(false);
    expect(isOfFleet(job({ metadata: null }), "f")).toBe(false);
    expect(isOfFleet(job({ status: "FAILED", metadata: { rolldeck_fleet: "g" } }), "f")).toBe(false);
  });

  test.each([
    [{ status: "PENDING" }, { state: "created", url: null }],
    [
      { status: "FAILED", driver_exit_code: 3 },
      { state: "ended", url: null, exitCode: 3, outOfMemory: false },
    ],
    [
      { status: "FAILED", driver_exit_code: 84 },
      { state: "ended", exitCode: 137, outOfMemory: true },
    ],
    [{ status: "STOPPED" }, { state: "ended", exitCode: null }],
  ])("%j", (answer, seen) => {
    expect(seenWorker(job(answer), "f", endpoint)).toMatchObject(seen);
  });

  test.each([
    ["http://10.0.0.9:1", "http://10.0.0.5:8265", "http://10.0.0.9:20001"],
    ["http://[fd00::9]:1", "http://10.0.0.5:8265", "http://[fd00::9]:20001"],
    ["http://127.0.0.1:1", "http://127.0.0.1:8265", "http://127.0.0.1:20001"],
    // It would be this machine's own port.
    ["http://127.0.0.1:1", "http://10.0.0.5:8265", null],
    ["http://8.8.8.8:1", "http://10.0.0.5:8265", null],
    ["http://head.example.org:1", "http://10.0.0.5:8265", null],
    ["http://10.0.0.9.example.org:1", "http://10.0.0.5:8265", null],
    [null, "http://10.0.0.5:8265", null],
  ])("a worker on node %s of the cluster at %s is reached at %s", (node, url, reached) => {
    expect(workerUrl(job({ driver_agent_http_address: node }), { ...endpoint, url })).toBe(reached);
  });

  test.each(["80", "0", "x", "70000", "1e4.5", ""])("port %j is none", (port) => {
    expect(workerUrl(job({ metadata: { rolldeck_port: port } }), endpoint)).toBe(null);
  });
});

const line = (said: string): string => `2026-01-01T00:00:00.000000Z ${said}`;
test.each([
  [line('{"url": "http://10.0.0.9:20001", "boot_id": "b"}'), "http://10.0.0.9:20001"],
  [`noise\n${line('{"url":"http://10.0.0.1:20001","boot_id":"b"}')}\nmore`, "http://10.0.0.1:20001"],
  // A job of this name that was before it, as Ray keeps its log.
  [line('{"url": "http://10.0.0.9:20002", "boot_id": "a"}'), null],
  [
    `${line('{"url": "http://10.0.0.8:20002", "boot_id": "a"}')}\n${line('{"url": "http://10.0.0.9:20001", "boot_id": "b"}')}`,
    "http://10.0.0.9:20001",
  ],
  // Torn, without its time, or not alone on its line.
  [line('{"url": "http://10.0.0.9:20001", "boot'), null],
  ['{"url": "http://10.0.0.9:20001", "boot_id": "b"}', null],
  [line('said {"url": "http://10.0.0.9:20001", "boot_id": "b"}'), null],
  [line('{"url": "http://10.0.0.9:20001"}'), null],
  [line(`{"url": "http://10.0.0.9:20001/${"x".repeat(1_000)}", "boot_id": "b"}`), null],
])("%j says that it listens at %j", (log, url) => {
  expect(saidUrl(log, job({}))).toBe(url);
});

test("nodes that live are one host, their GPUs by number and by the kind that Ray names", () => {
  const node = (resources: Record<string, number>, lives = true) => ({ address: "10.0.0.9", lives, resources });
  const facts = factsOf("ray", "2.60.0", [
    node({ CPU: 8, memory: 4096 * 1024 ** 2, GPU: 2, "accelerator_type:H200": 1 }),
    node({ CPU: 4, GPU: 1 }),
    node({ CPU: 64, GPU: 8 }, false),
  ]);
  expect(facts).toMatchObject({
    daemon: "Ray 2.60.0",
    system: "2 nodes",
    cpus: 12,
    memoryMb: 4_096,
    gpuRuntime: "nvidia",
  });
  expect(facts.gpus.map(({ uuid, model }) => `${uuid} ${model}`)).toEqual([
    ...["ray-gpu-0 H200", "ray-gpu-1 H200", "ray-gpu-2 GPU"],
  ]);
  expect(factsOf("ray", "2", [node({ CPU: 1 })])).toMatchObject({ gpuRuntime: null, gpus: [], system: "1 node" });
});
