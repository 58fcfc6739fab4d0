/** GPU workers as jobs of a real Ray: what every launcher does, and the real worker on a CPU. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { RayEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { connectRayJobs } from "@rolldeck/fleet/ray/ray-jobs";
import { RayLauncher } from "@rolldeck/fleet/ray/ray-launcher";
import { askWorker, failureOf, untilUp } from "@rolldeck/fleet/testing/ask-worker";
import { canary, describeLauncher } from "@rolldeck/fleet/testing/launcher-conformance";
import { workerScript } from "@rolldeck/fleet/testing/worker-image";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { preparePython } from "../../apps/cli/src/start/python-environment.ts";
import { type StartedRay, startRay } from "../stack/started-ray.ts";

const root = path.resolve(import.meta.dirname, "../..");
const source = path.join(root, "infra/gpu-worker");
const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-fleet-ray-"));
const script = path.join(folder, "worker.mjs");
const tokenFile = path.join(folder, "token");
const signal = AbortSignal.timeout(900_000);
let ray: StartedRay;
let python: string;

beforeAll(async () => {
  writeFileSync(script, workerScript);
  ray = await startRay({ nodeAddress: "127.0.0.2" });
  writeFileSync(tokenFile, `${ray.token}\n`);
  const request = { root, withTests: false, torch: "cpu", env: process.env, onProgress: () => undefined } as const;
  python = await preparePython(request);
}, 700_000);
afterAll(async () => {
  await ray?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const keeper = (): string => `exec env PYTHONPATH=${source} ${python} -m rolldeck_gpu_worker.keeper`;
const launcher = (fleet = "test", over: object = {}, pendingMs = 120_000): RayLauncher =>
  new RayLauncher({
    ...{ name: "ray", fleet, pollMs: 200, logPollMs: 300, pendingMs },
    endpoint: RayEndpoint.parse({
      ...{ kind: "ray", url: ray.url, tokenFile },
      entrypoint: `${keeper()} --worker "${process.execPath} ${script}"`,
      ...over,
    }),
  });
const real = (): RayLauncher => launcher("test", { entrypoint: keeper() });
const shared = { checkpointFolder: path.join(folder, "checkpoints"), modelFolder: path.join(root, "infra/models") };
const spec = (over: Partial<LaunchSpec> = {}): LaunchSpec => ({
  ...{ workerId: "w1", claim: 1, runId: "r1", role: "colocated", device: "cpu", devices: ["cpu-ray-1"] },
  ...{ memoryMb: 4_096, image: "unused", key: canary, address: "127.0.0.1", reads: [], ...shared },
  ...over,
});

/** Number of the process that was told to listen there, past its keeper. */
async function workerAt(port: string): Promise<number> {
  for (const name of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const words = await readFile(`/proc/${name}/cmdline`, "utf8").then(
      (text) => text.split("\0"),
      (): string[] => [],
    );
    if (words.includes("rolldeck_gpu_worker") && words[words.indexOf("--port") + 1] === port) return Number(name);
  }
  throw new Error(`no worker listens at ${port}`);
}

describe("GPU workers as jobs of Ray", () => {
  describeLauncher({
    launcher,
    left: async () => (await connectRayJobs(ray).list()).length,
    noGpu: { code: "no-gpu-runtime", message: /no node of ray offers Ray one/ },
    spec: shared,
    withoutWorker: () => launcher("test", { entrypoint: `exec ${python} -m rolldeck_gpu_worker.keeper` }),
  });

  test("the real worker is started, asked, seen by another process, and ended after it put its model away", async () => {
    expect(await real().facts(signal)).toMatchObject({ cpus: 2, gpus: [], gpuRuntime: null });
    const { containerId, url } = await real().launch(spec(), signal);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
    await untilUp(url);
    expect((await askWorker(url, "/ext/v1/info", "tml-another-key")).status).toBe(401);
    expect((await askWorker(url, "/ext/v1/info", canary)).body).toMatchObject({ boot_id: expect.any(String) });
    expect(await launcher().seen(signal)).toMatchObject([{ containerId, workerId: "w1", state: "running", url }]);
    await launcher().remove(containerId, 20_000, signal);
    expect(await launcher().seen(signal)).toEqual([]);
    await expect(fetch(url)).rejects.toThrow();
  });

  test("a real worker that is killed is seen as that", async () => {
    const { containerId, url } = await real().launch(spec({ claim: 2 }), signal);
    const pid = await workerAt(new URL(url).port);
    process.kill(pid, "SIGKILL");
    const seen = () => real().seen(signal);
    await expect.poll(seen, { timeout: 60_000 }).toMatchObject([{ state: "ended", exitCode: 137, outOfMemory: false }]);
    await real().remove(containerId, 1_000, signal);
  });

  test("one that holds more memory than it may is ended, and that is seen", async () => {
    const grow = `${workerScript}\nconst held = []; setInterval(() => held.push(Buffer.alloc(20e6, 1)), 100);`;
    writeFileSync(path.join(folder, "greedy.mjs"), grow);
    const greedy = launcher("test", {
      entrypoint: `${keeper()} --worker "${process.execPath} ${path.join(folder, "greedy.mjs")}"`,
    });
    const started = await greedy.launch(spec({ claim: 4, memoryMb: 256 }), signal);
    const seen = () => greedy.seen(signal);
    await expect.poll(seen, { timeout: 60_000 }).toMatchObject([{ state: "ended", exitCode: 137, outOfMemory: true }]);
    await greedy.remove(started.containerId, 1_000, signal);
  });

  test("a token that is wrong or can't be read, an address where no Ray is, and a job of another's are told", async () => {
    writeFileSync(path.join(folder, "wrong"), "wrong-token-wrong-token-wrong-token");
    for (const over of [
      { tokenFile: path.join(folder, "wrong") },
      { tokenFile: path.join(folder, "none") },
      { url: "http://127.0.0.1:1" },
    ]) {
      const failure = await failureOf(launcher("test", over).seen(signal));
      expect(failure).toMatchObject({ retryable: true, reason: { code: "unavailable" } });
      expect(JSON.stringify(failure.reason)).not.toContain("wrong-token");
    }
    const left = await failureOf(launcher().remove("first", 1_000, signal));
    expect(left.reason.message).toContain("is left alone");
  });

  test("one that no node takes is given back, and is nobody's as long as Ray keeps it", async () => {
    const failure = await failureOf(
      launcher("test", {}, 5_000).launch(spec({ claim: 9, devices: ["a", "b", "c"] }), signal),
    );
    expect(failure).toMatchObject({
      retryable: true,
      reason: { message: expect.stringContaining("no node of ray takes") },
    });
    expect(await launcher().seen(signal)).toMatchObject([{ workerId: "w1", state: "created", url: null }]);
  });
});
