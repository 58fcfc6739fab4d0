/** Pods, where the API server is the tests' own over real containers: see testing/kube-api. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { noResources, type SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeConformance } from "../../testing/conformance.ts";
import { type KubeApi, startKubeApi } from "../../testing/kube-api.ts";
import { kubeconfigVariable, makeRuntime } from "../../testing/kube-runtime.ts";
import { testDocker } from "../../testing/test-docker.ts";

const docker = testDocker();
const folder = await mkdtemp(join(tmpdir(), "rolldeck-kube-"));
const kubeconfig = join(folder, "config");
process.env[kubeconfigVariable] = kubeconfig;
const image = { kind: "name", name: docker?.image ?? "" } as const;
const signal = new AbortController().signal;

const spec = (change: Partial<SandboxSpec> = {}): SandboxSpec => ({
  id: `sbx_${randomBytes(10).toString("hex")}`,
  image,
  resources: { ...noResources, memoryMb: 256 },
  network: { mode: "none" },
  workdir: null,
  environment: {},
  services: [],
  labels: { run: "run-1" },
  mounts: [],
  leaseMs: 60_000,
  maxLifeMs: 600_000,
  ...change,
});

describe.skipIf(docker === null)("with a Docker daemon", () => {
  let api: KubeApi;
  beforeAll(async () => {
    api = await startKubeApi(docker?.socket ?? "");
    await writeFile(kubeconfig, api.kubeconfig);
  });
  afterAll(async () => {
    await api?.close();
    await rm(folder, { recursive: true });
  });

  describeConformance("kubernetes", makeRuntime, {
    image,
    folder: "/srv",
    smallFolder: "/tmp",
    otherUser: "nobody",
    told: { disk: /eviction/, pids: /nodes' own limit/, users: /one user/ },
    holder: {
      module: fileURLToPath(new URL("../../testing/kube-runtime.ts", import.meta.url)),
      environment: { [kubeconfigVariable]: kubeconfig },
    },
    many: 16,
  });

  test("networks are closed before the first pod is opened", async () => {
    const runtime = makeRuntime("policies");
    expect(await runtime.ailment(signal)).toBeNull();
    expect([...api.policies.keys()].sort()).toEqual(["rolldeck-no-network", "rolldeck-public-network"]);
  });

  test("what a pod can't be had for is told, and no pod is left", async () => {
    const runtime = makeRuntime("refused");
    const before = api.pods().length;
    await expect(runtime.open(spec({ image: { kind: "name", name: "no/such:image" } }), signal)).rejects.toMatchObject({
      boundary: "sandbox",
      code: "no_image",
    });
    api.refuseNext(403, 'pods "x" is forbidden: exceeded quota: sandboxes');
    await expect(runtime.open(spec(), signal)).rejects.toMatchObject({ code: "full", retryable: true });
    api.refuseNext(403, 'pods "x" is forbidden: violates PodSecurity');
    await expect(runtime.open(spec(), signal)).rejects.toMatchObject({ code: "refused" });
    expect(api.pods()).toHaveLength(before);
  });

  test("an image is pulled on every node, and what pulled it is gone", async () => {
    const runtime = makeRuntime("pulled");
    await runtime.prepare?.(image, () => undefined, signal);
    expect(api.daemonSets.size).toBe(0);
  });

  test("a server that is away is told as that", async () => {
    const away = join(folder, "away");
    await writeFile(away, api.kubeconfig.replace(api.url, "http://127.0.0.1:1"));
    process.env[kubeconfigVariable] = away;
    const runtime = makeRuntime("away");
    process.env[kubeconfigVariable] = kubeconfig;
    expect(await runtime.ailment(signal)).toContain("ECONNREFUSED");
    await expect(runtime.list(signal)).rejects.toMatchObject({ code: "unavailable", retryable: true });
  });
});
