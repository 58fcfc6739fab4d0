/**
 * The GPU worker's real image on two hosts, one by socket and one by TCP with TLS: real workers on places of their processors train,
 * save, are killed, start again over the same volume, and have the same weights.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import type { StepBackend, TrainableModel } from "@rolldeck/contracts/ports/backend";
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { DockerLauncher } from "@rolldeck/fleet/docker/docker-launcher";
import { readHealth } from "@rolldeck/fleet/reconcile/read-health";
import { startTestHost, type TestHost } from "@rolldeck/fleet/testing/docker-hosts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exportModel, largestDifference, readTensors } from "../real/exported-model.ts";
import { prepareLocked } from "../runner/locked-environment.ts";
import { runCommand } from "../runner/run-command.ts";
import { buildWorkerImage, copyWorkerImage, realWorkerImage } from "./worker-image.ts";

const minutes = 60_000;
const key = "tml-fleet-image-fleet-image-fleet-image";
const signal = new AbortController().signal;
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const hosts: TestHost[] = [];
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-fleet-image-"));
  for (const [place, how] of (["socket", "tcp"] as const).entries()) {
    const host = await startTestHost(place, how);
    if ("missing" in host) throw new Error(host.missing);
    hosts.push(host);
  }
  const [first, second] = hosts;
  if (first === undefined || second === undefined) throw new Error("no hosts");
  await buildWorkerImage(first.daemon.socket, say);
  await copyWorkerImage(first.daemon.socket, second.daemon.socket);
}, 20 * minutes);
afterAll(async () => {
  await Promise.all(hosts.map((host) => host.stop()));
  if (folder) rmSync(folder, { recursive: true, force: true });
}, 5 * minutes);

const hostAt = (at: number): TestHost => {
  const host = hosts[at];
  if (host === undefined) throw new Error(`no host ${at}`);
  return host;
};
const launcherAt = (at: number): DockerLauncher =>
  new DockerLauncher({ name: `host-${at}`, endpoint: hostAt(at).endpoint, fleet: "image", image: realWorkerImage });
const specOf = (at: number, claim: number): LaunchSpec => ({
  ...{ workerId: `w${at}`, claim, runId: `r${at}`, role: "colocated", device: "cpu", devices: [`place-${at}`] },
  ...{
    memoryMb: 2_048,
    image: realWorkerImage,
    key,
    address: "127.0.0.1",
    reads: [],
    checkpointFolder: null,
    modelFolder: null,
  },
});

async function launchedAt(at: number, claim: number) {
  const launched = await launcherAt(at).launch(specOf(at, claim), signal);
  await expect
    .poll(() => readHealth(launched.url, key, signal), { timeout: 2 * minutes, interval: 500 })
    .not.toBeNull();
  const health = await readHealth(launched.url, key, signal);
  return { ...launched, bootId: health?.bootId ?? "" };
}

/** What a command in the container prints, and how it ends. */
async function inside(at: number, containerId: string, command: readonly string[]) {
  const made = await hostAt(at)
    .docker.getContainer(containerId)
    .exec({ Cmd: [...command], AttachStdout: true, AttachStderr: true });
  const stream = await made.start({ Tty: false });
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(Buffer.from(piece));
  return { code: (await made.inspect()).ExitCode, output: Buffer.concat(pieces).toString() };
}

const tokens = Array.from({ length: 24 }, (_, at) => (7 * at + 5) % 200);
const each = (value: number): number[] => tokens.slice(1).map(() => value);
const row = { inputs: tokens.slice(0, -1), targets: tokens.slice(1) };
const datum = { ...row, logprobs: each(0), advantages: each(0), weights: each(1 / row.targets.length) };
const loss = { name: "cross_entropy", config: {} };
const adam = { learningRate: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClipNorm: 1 };

async function trained(
  model: TrainableModel,
): Promise<{ readonly path: string; readonly logprobs: readonly number[] }> {
  await model.forwardBackward([datum], loss, 1);
  expect(await model.optimStep(adam, { seqId: 2, expectStep: 0 })).toMatchObject({ step: 1 });
  const { path: saved } = await model.saveWeights("kept", 3);
  return { path: saved, logprobs: await logprobsOf(model, 4) };
}
const logprobsOf = async (model: TrainableModel, seqId: number): Promise<readonly number[]> =>
  (await model.forward([datum], loss, seqId)).logprobs[0] ?? [];
const connected = (url: string): StepBackend => connectTinker({ url, apiKey: key, dialect: "rolldeck" });
const modelOf = (backend: StepBackend, at: number, token: number): Promise<TrainableModel> =>
  backend.createModel({ baseModel: "quickstart", seed: 3, fence: { runId: `r${at}`, token } });

describe("the GPU worker's image", () => {
  test("holds what its lock says, on a base without pip, and little else", async () => {
    const image = hostAt(0).docker.getImage(realWorkerImage);
    const { Size, Config } = await image.inspect();
    say(`image: ${(Size / 1e9).toFixed(2)} GB`);
    expect(Size).toBeLessThan(2e9);
    expect(Config).toMatchObject({ User: "10001:10001", Healthcheck: { Test: expect.arrayContaining(["CMD"]) } });
    expect((await image.history()).some(({ CreatedBy }: { CreatedBy: string }) => /\/wheels in/.test(CreatedBy))).toBe(
      false,
    );
  });

  test.each([0, 1])(
    "host %i: trains, is killed, starts again over the same volume, and has the same weights",
    async (at) => {
      const first = await launchedAt(at, 1);
      const { containerId } = first;
      const identity = await inside(at, containerId, [
        "sh",
        "-c",
        "exec 2>&1; id -u; touch /root-is-read-only; touch /tmp/a /data/a && echo writes",
      ]);
      expect(identity.output).toMatch(/10001[\s\S]*Read-only file system[\s\S]*writes/);
      const versions = "import torch, transformers; print(f'{torch.__version__} {transformers.__version__}')";
      expect((await inside(at, containerId, ["python3", "-c", versions])).output).toMatch(/\d\.\d+\.\d\+cpu \d/);
      const health = (await hostAt(at).docker.getContainer(containerId).inspect()).Config.Healthcheck?.Test ?? [];
      expect((await inside(at, containerId, health.slice(1))).code).toBe(0);

      const before = connected(first.url);
      const kept = await trained(await modelOf(before, at, 1));
      const weights = readTensors(
        await exportModel({ url: first.url, apiKey: key }, kept.path, path.join(folder, `${at}-a`)),
      );
      await before.close();
      await hostAt(at).docker.getContainer(containerId).kill({ signal: "SIGKILL" });
      const ended = async () => (await launcherAt(at).seen(signal)).find(({ workerId }) => workerId === `w${at}`);
      await expect.poll(ended, { timeout: minutes }).toMatchObject({ state: "ended", exitCode: 137, url: null });
      await launcherAt(at).remove(containerId, 1_000, signal);

      const second = await launchedAt(at, 2);
      expect(second.bootId).not.toBe(first.bootId);
      const after = connected(second.url);
      const model = await modelOf(after, at, 2);
      const fresh = await logprobsOf(model, 1);
      await model.loadWeights(kept.path, { optimizer: true, seqId: 2 });
      // Bit for bit; and the update had changed them.
      expect(await logprobsOf(model, 3)).toEqual(kept.logprobs);
      expect(fresh).not.toEqual(kept.logprobs);
      const { path: again } = await model.saveWeights("again", 4);
      const loaded = readTensors(
        await exportModel({ url: second.url, apiKey: key }, again, path.join(folder, `${at}-b`)),
      );
      expect(largestDifference(weights, loaded)).toBe(0);
      await after.close();

      const lines: string[] = [];
      for await (const line of launcherAt(at).logs(second.containerId, { tail: 50, follow: false }, signal))
        lines.push(line);
      expect(lines.join("\n")).toContain('"boot_id"');
      expect(lines.join("\n")).not.toContain(key);
      await launcherAt(at).remove(second.containerId, 20_000, signal);
      await launcherAt(at).forgetRun(`r${at}`, signal);
      expect((await hostAt(at).docker.listVolumes()).Volumes).toEqual([]);
    },
  );

  test("the lock of variant `cuda` is what its requirements resolve to", async () => {
    const locks = path.resolve(import.meta.dirname, "../../infra/gpu-worker/locks");
    const python = await prepareLocked({ name: "uv", shelf: "uv", lock: path.join(locks, "requirements.lock") }, say);
    const options = { cwd: locks, limitMs: 3 * minutes, keepOutput: true };
    const end = await runCommand(python, ["make_locks.py", "cuda", "--check"], options);
    expect(end.output).toMatch(/^cuda: \d+ packages resolve/m);
    expect(end.code).toBe(0);
  });
});
