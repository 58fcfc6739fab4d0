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
import { Cluster } from "./cluster.ts";
import { KubernetesRuntime } from "./kubernetes-runtime.ts";

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
      message: expect.stringMatching(/^image no\/such:image .*correct its name/),
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

  test("an image that no node can pull is named with the reason, and what pulled it is gone", async () => {
    const runtime = makeRuntime("not-pulled");
    const missing = { kind: "name", name: "no/such:image" } as const;
    const pulling = runtime.prepare?.(missing, () => undefined, signal);
    await expect(pulling).rejects.toMatchObject({
      boundary: "sandbox",
      code: "no_image",
      message: expect.stringMatching(/no\/such:image.*ErrImagePull.*no such image.*nodes can pull it/is),
    });
    expect(api.daemonSets.size).toBe(0);
  });

  test("an image that is for ever on its way is waited for only so long", async () => {
    let now = 0;
    const runtime = new KubernetesRuntime({
      cluster: new Cluster(api.kubeconfig, "rolldeck"),
      deployment: "slow",
      // Ten minutes at each look.
      now: () => {
        now += 600_000;
        return now;
      },
      onTrouble: () => undefined,
    });
    api.holdPulls("pulling layer 3 of 9");
    const told: string[] = [];
    try {
      await expect(runtime.prepare(image, (message) => told.push(message), signal)).rejects.toMatchObject({
        code: "no_image",
        retryable: true,
        message: expect.stringMatching(
          new RegExp(`${image.name} is on 0 of 1 nodes after \\d+ minutes \\(ContainerCreating pulling layer 3`),
        ),
      });
    } finally {
      api.holdPulls(null);
    }
    expect(told).toContain(`${image.name}: on 0 of 1 nodes`);
    expect(api.daemonSets.size).toBe(0);
  });

  test("its agent can neither prolong nor end its lease", async () => {
    const runtime = makeRuntime("leases");
    const sandbox = await runtime.open(spec({ leaseMs: 12_000, maxLifeMs: 300_000 }), signal);
    const script = `cd /rolldeck; for until in 99999999999 1; do
      echo $until >lease; echo $until >new && mv new lease; rm -f lease; mv lease other; ln -sf /tmp/mine lease
    done 2>/dev/null; cat lease; echo; ls -A`;
    const before = Math.floor(Date.now() / 1000);
    const { stdout } = await sandbox.exec({ command: ["bash", "-c", script], timeoutMs: 10_000 }, signal);
    const [until, ...names] = Buffer.from(stdout.head).toString().trim().split("\n");
    expect(names).toEqual(["lease"]);
    expect(Number(until)).toBeLessThan(before + 20);
    // Longer than its keeper takes to read it again.
    expect((await sandbox.exec({ command: ["sleep", "6"], timeoutMs: 20_000 }, signal)).exitCode).toBe(0);
    await expect.poll(() => runtime.list(signal), { timeout: 60_000 }).toEqual([]);
  });

  test("a lease that could not be renewed is not told as renewed", async () => {
    const troubles: string[] = [];
    const runtime = new KubernetesRuntime({
      cluster: new Cluster(api.kubeconfig, "rolldeck"),
      deployment: "unrenewed",
      now: () => Date.now(),
      onTrouble: (message) => troubles.push(message),
    });
    const sandbox = await runtime.open(spec(), signal);
    for (const code of [422, 500]) {
      api.refusePatches(code);
      expect([...(await runtime.renew([sandbox.id], 60_000, signal))]).toEqual([]);
    }
    api.refusePatches(null);
    expect(troubles).toEqual(Array(2).fill(`the lease of sandbox ${sandbox.id} was not renewed`));
    expect([...(await runtime.renew([sandbox.id], 60_000, signal))]).toEqual([sandbox.id]);
    await runtime.close(sandbox.id, signal);
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
