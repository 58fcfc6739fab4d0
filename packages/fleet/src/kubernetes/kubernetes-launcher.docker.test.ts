/** Pods of GPU workers, where the API server is the tests' own over real containers: packages/sandbox/testing/kube-api. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { KubernetesEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { failureOf, untilUp } from "../../testing/ask-worker.ts";
import { type KubeHost, startKubeHost } from "../../testing/kube-host.ts";
import { canary, describeLauncher } from "../../testing/launcher-conformance.ts";
import { workerImage } from "../../testing/worker-image.ts";
import { KubernetesLauncher } from "./kubernetes-launcher.ts";

const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-fleet-kube-"));
const kubeconfig = path.join(folder, "config");
const signal = AbortSignal.timeout(170_000);
let host: KubeHost;
let api: KubeHost["api"];

beforeAll(async () => {
  if (!process.env.ROLLDECK_TEST_DOCKER) return;
  host = await startKubeHost(8);
  api = host.api;
  writeFileSync(kubeconfig, api.kubeconfig);
});
afterAll(async () => {
  await host?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const launcher = (fleet = "test", over: object = {}): KubernetesLauncher =>
  new KubernetesLauncher({
    ...{ name: "cluster", fleet, pollMs: 100, unscheduledMs: 1_000 },
    endpoint: KubernetesEndpoint.parse({ kind: "kubernetes", kubeconfig, checkpointClaim: "checkpoints", ...over }),
  });
const spec: LaunchSpec = {
  ...{ workerId: "w1", claim: 1, runId: "r1", role: "colocated", device: "gpu", devices: ["cluster-gpu-0"] },
  ...{ memoryMb: null, image: workerImage, key: canary, address: "127.0.0.1" },
  ...{ reads: [], checkpointFolder: null, modelFolder: null },
};
const gpuNode = (name: string, gpus: number, pool: string) => ({
  metadata: { name, labels: { pool, "nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771" } },
  status: {
    allocatable: { cpu: "15890m", memory: "64Gi", "nvidia.com/gpu": String(gpus) },
    conditions: [{ type: "Ready", status: "True" }],
  },
});

describe.skipIf(!process.env.ROLLDECK_TEST_DOCKER)("GPU workers as pods", () => {
  describeLauncher({
    launcher,
    left: async () => api.pods().length + api.secrets.size,
    noGpu: { code: "launch-failed", message: /Insufficient nvidia\.com\/gpu/ },
  });

  test("nodes that fit its labels are one host, their GPUs by number; one that is not ready counts for nothing", async () => {
    const away = gpuNode("c", 8, "training");
    const down = { ...away, status: { ...away.status, conditions: [{ type: "Ready", status: "Unknown" }] } };
    api.nodes.push(gpuNode("a", 2, "training"), gpuNode("b", 1, "training"), gpuNode("d", 4, "other"), down);
    const facts = await launcher("test", { nodeSelector: { pool: "training" } }).facts(signal);
    expect(facts).toMatchObject({ daemon: "Kubernetes v1.29.0", cpus: 31, memoryMb: 2 * 65_536, gpuRuntime: "nvidia" });
    const gpu = { model: "NVIDIA-H200", memoryMb: 143_771 };
    expect(facts.gpus).toEqual([0, 1, 2].map((index) => ({ ...gpu, index, uuid: `cluster-gpu-${index}` })));
    expect(await launcher("test", { nodeSelector: { pool: "none" } }).facts(signal)).toMatchObject({
      gpuRuntime: null,
      gpus: [],
    });
    const { containerId, url } = await launcher().launch(spec, signal);
    await untilUp(url);
    await launcher().remove(containerId, 1_000, signal);
    api.nodes.length = 0;
  });

  test("the key is in the pod's secret alone, and goes with the pod; another fleet's pod is left alone", async () => {
    const { containerId, url } = await launcher().launch({ ...spec, device: "cpu" }, signal);
    await untilUp(url);
    const inspected = await host.docker.listContainers();
    expect(JSON.stringify(inspected)).not.toContain("canary");
    expect([...api.secrets.keys()]).toEqual([containerId]);
    const failure = await failureOf(launcher("another").remove(containerId, 1_000, signal));
    expect(failure.message).toContain("not of this fleet");
    await launcher().remove(containerId, 1_000, signal);
    expect([...api.secrets.keys()]).toEqual([]);
  });

  test("a server that refuses or is away, a kubeconfig that is not there, and checkpoints without a home are told with what to do", async () => {
    api.refuseNext(403, 'pods is forbidden: User "deck" cannot create resource "pods"');
    const refused = await failureOf(launcher().launch({ ...spec, device: "cpu" }, signal));
    expect(refused.reason).toMatchObject({
      code: "launch-failed",
      remedy: expect.stringContaining("create and delete pods"),
    });
    const homeless = await failureOf(
      launcher("test", { checkpointClaim: null }).launch({ ...spec, device: "cpu" }, signal),
    );
    expect(homeless.reason.remedy).toContain("persistent volume claim");
    const elsewhere = path.join(folder, "away");
    writeFileSync(elsewhere, api.kubeconfig.replace(api.url, "http://127.0.0.1:1"));
    for (const file of [elsewhere, path.join(folder, "none")]) {
      const failure = await failureOf(launcher("test", { kubeconfig: file }).seen(signal));
      expect(failure).toMatchObject({ retryable: true, reason: { code: "unavailable" } });
    }
    expect(api.pods()).toEqual([]);
  });
});
