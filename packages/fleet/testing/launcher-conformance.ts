/** What every launcher does, whatever it launches on. Its host has the test worker (worker-image.ts) and no GPU. */
import type { FleetReason } from "@rolldeck/contracts/fleet";
import type { LaunchSpec, WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import { expect, test } from "vitest";
import { askWorker, failureOf, untilUp } from "./ask-worker.ts";
import { workerImage } from "./worker-image.ts";

export const canary = "tml-canary-0001-not-to-be-seen";

interface Told {
  readonly code: FleetReason["code"];
  readonly message: RegExp;
}

export interface LauncherUnderTest {
  /** A new one, which knows nothing. @param fleet another one's than the suite's own */
  launcher(fleet?: string): WorkerLauncher;
  /** How many containers, pods, … there are on the host, whoever's. */
  left(): Promise<number>;
  /** How a GPU that is not to be had there is told. */
  readonly noGpu: Told;
  /** What workers there need beside the suite's own. */
  readonly spec?: Partial<LaunchSpec>;
  /** One on whose host nothing starts a worker; by default that is an image which is not there. */
  withoutWorker?(): WorkerLauncher;
}

export function describeLauncher(under: LauncherUnderTest): void {
  const signal = AbortSignal.timeout(600_000);
  const spec = (over: Partial<LaunchSpec> = {}): LaunchSpec => ({
    ...{ workerId: "c1", claim: 1, runId: "conformance", role: "colocated", device: "cpu" },
    ...{ devices: ["place-1", "place-2"], memoryMb: 512, image: workerImage, key: canary, address: "127.0.0.1" },
    ...{ reads: [], checkpointFolder: null, modelFolder: null, ...under.spec },
    ...over,
  });

  test("starts one that wants its key, which another process finds by its labels and ends, and another fleet does not see", async () => {
    const { containerId, url } = await under.launcher().launch(spec(), signal);
    await untilUp(url);
    expect((await askWorker(url, "/ext/v1/info", "tml-another-key")).status).toBe(401);
    expect((await askWorker(url, "/ext/v1/info", canary)).body).toMatchObject({ device: "cpu" });
    const another = under.launcher();
    expect(await another.seen(signal)).toEqual([
      {
        ...{ containerId, workerId: "c1", claim: 1, devices: ["place-1", "place-2"], state: "running", url },
        ...{ exitCode: null, outOfMemory: false },
      },
    ]);
    expect(await under.launcher("another").seen(signal)).toEqual([]);
    await another.remove(containerId, 5_000, signal);
    await another.remove(containerId, 5_000, signal);
    expect(await another.seen(signal)).toEqual([]);
  });

  test("what a run saved is there for its next worker, and a launch that was cut off is no hindrance", async () => {
    const launcher = under.launcher();
    const runId = "kept";
    await launcher.launch(spec({ runId, workerId: "c2" }), signal);
    // The same placement again, as whoever takes over would: the first one is gone then.
    const { containerId, url } = await launcher.launch(spec({ runId, workerId: "c2" }), signal);
    await untilUp(url);
    expect((await launcher.seen(signal)).map(({ workerId }) => workerId)).toEqual(["c2"]);
    const { body } = await askWorker(url, "/ext/v1/info", canary);
    expect(body).toMatchObject({ boots: expect.any(Number) });
    await launcher.remove(containerId, 5_000, signal);
    const next = await launcher.launch(spec({ runId, workerId: "c2", claim: 2 }), signal);
    await untilUp(next.url);
    const boots = (answer: unknown): number => Number(Object(answer).boots);
    expect(boots((await askWorker(next.url, "/ext/v1/info", canary)).body)).toBe(boots(body) + 1);
    await launcher.remove(next.containerId, 5_000, signal);
    await launcher.forgetRun(runId, signal);
    await launcher.forgetRun(runId, signal);
  });

  test("one that crashes is seen as ended, with its exit code and its last words, in which its key is not", async () => {
    const launcher = under.launcher();
    const { containerId, url } = await launcher.launch(spec({ workerId: "c3", runId: "crash" }), signal);
    await untilUp(url);
    const heard: string[] = [];
    const listening = (async () => {
      for await (const line of launcher.logs(containerId, { tail: 10, follow: true }, signal)) heard.push(line);
    })();
    await expect.poll(() => heard.join("\n"), { timeout: 30_000 }).toMatch(/^\S+Z ready$/m);
    await askWorker(url, "/crash", canary).catch(() => undefined);
    await listening;
    expect(heard.some((line) => line.endsWith("about to crash"))).toBe(true);
    const own = async () => (await launcher.seen(signal)).find(({ workerId }) => workerId === "c3");
    await expect.poll(own, { timeout: 30_000 }).toMatchObject({ state: "ended", exitCode: 3, url: null });
    const lines: string[] = [];
    for await (const line of launcher.logs(containerId, { tail: 1, follow: false }, signal)) lines.push(line);
    expect(lines).toEqual([expect.stringMatching(/about to crash$/)]);
    expect(heard.join("\n")).not.toContain("canary");
    await launcher.remove(containerId, 1_000, signal);
    await launcher.forgetRun("crash", signal);
  });

  test("what starts a worker, where it is not to be had, and a GPU that is not, are told as that, and nothing is left", async () => {
    const before = await under.left();
    const without = under.withoutWorker?.() ?? under.launcher();
    const noImage = await failureOf(without.launch(spec({ image: "rolldeck-no-such:1" }), signal));
    expect(noImage.reason).toMatchObject({ code: "no-image" });
    const noGpu = await failureOf(under.launcher().launch(spec({ device: "gpu", devices: ["GPU-1"] }), signal));
    expect(noGpu.reason).toMatchObject({ code: under.noGpu.code, message: expect.stringMatching(under.noGpu.message) });
    for (const { reason } of [noImage, noGpu]) expect(JSON.stringify(reason)).not.toContain("canary");
    expect(await under.left()).toBe(before);
    expect(await under.launcher().seen(signal)).toEqual([]);
  });
}
