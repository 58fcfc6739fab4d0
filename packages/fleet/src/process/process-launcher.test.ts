/** Workers as processes of this machine: real processes under the real keeper, with a small server in the worker's place. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { askWorker, failureOf, untilUp } from "../../testing/ask-worker.ts";
import { canary, describeLauncher } from "../../testing/launcher-conformance.ts";
import { workerScript } from "../../testing/worker-image.ts";
import { isMarked, markedProcesses, processStart, signalMarked } from "./marked-processes.ts";
import { type LocalWorkers, ProcessLauncher } from "./process-launcher.ts";

const signal = AbortSignal.timeout(300_000);
const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-fleet-process-"));
const script = path.join(folder, "worker.mjs");
beforeAll(() => writeFileSync(script, workerScript));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const local = (over: Partial<LocalWorkers> = {}): LocalWorkers => ({
  python: async () => "python3",
  source: path.resolve(import.meta.dirname, "../../../../infra/gpu-worker"),
  ...{ folder: path.join(folder, "fleet"), modelRoots: "/models", worker: `${process.execPath} ${script}` },
  ...over,
});
const launcher = (fleet = "test", over: Partial<LocalWorkers> = {}): ProcessLauncher =>
  new ProcessLauncher({ name: "here", fleet, local: local(over) });
const spec = (over: Partial<LaunchSpec> = {}): LaunchSpec => ({
  ...{ workerId: "p1", claim: 1, runId: "r1", role: "colocated", device: "cpu", devices: ["cpu-here-1"] },
  ...{ memoryMb: null, image: "unused", key: canary, address: "127.0.0.1" },
  ...{ reads: [], checkpointFolder: null, modelFolder: null },
  ...over,
});
const placements = (fleet = "test"): string => path.join(folder, "fleet", fleet, "placements");
const left = (): string[] => (existsSync(placements()) ? readdirSync(placements()) : []);
const markOf = (id: string): string => `ROLLDECK_FLEET_PLACEMENT=test/${id}`;
interface Facts {
  readonly keeper: { readonly pid: number; readonly start: string };
  readonly worker: { readonly pid: number; readonly start: string };
}
const factsOf = (id: string): Facts => JSON.parse(readFileSync(path.join(placements(), id, "running.json"), "utf8"));

describe("GPU workers as processes", () => {
  describeLauncher({
    launcher,
    left: async () => left().length,
    noGpu: { code: "no-gpu-runtime", message: /needs a GPU that this machine does not have/ },
    withoutWorker: () =>
      launcher("test", { python: () => Promise.reject(new Error("no Python 3.10 to 3.13 was found")) }),
  });

  test("its environment holds its own key and none of our secrets; its command line holds neither", async () => {
    process.env.ROLLDECK_DATABASE_URL = "postgres://deck:secret-of-ours@127.0.0.1/deck";
    const { containerId } = await launcher().launch(spec(), signal);
    delete process.env.ROLLDECK_DATABASE_URL;
    const { keeper, worker } = factsOf(containerId);
    for (const { pid } of [keeper, worker]) {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
      expect(environment).toContain(`ROLLDECK_GPU_WORKER_KEY=${canary}`);
      expect(environment).toContain("CUDA_VISIBLE_DEVICES=\0");
      expect(environment).not.toContain("secret-of-ours");
      expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).not.toContain("canary");
    }
    for (const name of ["placement.json", "running.json"])
      expect(readFileSync(path.join(placements(), containerId, name), "utf8")).not.toContain("canary");
    await launcher().remove(containerId, 5_000);
    expect(left()).toEqual([]);
  });

  test("a keeper that was killed leaves a worker that is seen and ended; one whose worker was killed says so", async () => {
    const first = await launcher().launch(spec(), signal);
    process.kill(factsOf(first.containerId).keeper.pid, "SIGKILL");
    await expect.poll(() => processStart(factsOf(first.containerId).keeper.pid)).toBe(null);
    expect(await launcher().seen()).toMatchObject([{ state: "running", url: first.url }]);
    await launcher().remove(first.containerId, 5_000);
    expect(await markedProcesses(markOf(first.containerId))).toEqual([]);

    const second = await launcher().launch(spec({ claim: 2 }), signal);
    process.kill(factsOf(second.containerId).worker.pid, "SIGKILL");
    const seen = () => launcher().seen();
    await expect.poll(seen, { timeout: 20_000 }).toMatchObject([{ state: "ended", exitCode: 137, outOfMemory: false }]);
    await launcher().remove(second.containerId, 5_000);
  });

  test("one that holds more memory than it may is ended, and that is seen", async () => {
    const greedy = path.join(folder, "greedy.mjs");
    const grow = `const held = []; setInterval(() => held.push(Buffer.alloc(20e6, 1)), 100);`;
    writeFileSync(greedy, `${workerScript}\n${grow}`);
    const own = launcher("test", { worker: `${process.execPath} ${greedy}` });
    const { containerId } = await own.launch(spec({ memoryMb: 256 }), signal);
    await expect.poll(() => own.seen(), { timeout: 60_000 }).toMatchObject([{ state: "ended", outOfMemory: true }]);
    await own.remove(containerId, 1_000);
  });

  test("one that does not end when it is asked is killed with all that it started", async () => {
    const stubborn = path.join(folder, "stubborn.mjs");
    const child = `spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore", detached: true });`;
    const deaf = workerScript.replace(/process\.on\("SIGTERM".*\n/, 'process.on("SIGTERM", () => {});\n');
    writeFileSync(stubborn, `import { spawn } from "node:child_process";\n${deaf}\n${child}`);
    const own = launcher("test", { worker: `${process.execPath} ${stubborn}` });
    const { containerId } = await own.launch(spec(), signal);
    await expect.poll(async () => (await markedProcesses(markOf(containerId))).length).toBe(3);
    await own.remove(containerId, 300);
    expect(await markedProcesses(markOf(containerId))).toEqual([]);
    expect(left()).toEqual([]);
  });

  test("one that ends at once is told with its last words, and nothing is left", async () => {
    const broken = path.join(folder, "broken.mjs");
    writeFileSync(broken, `console.error("the model is broken"); process.exit(9);`);
    const own = launcher("test", { worker: `${process.execPath} ${broken}` });
    const failure = await failureOf(own.launch(spec(), signal));
    expect(failure.reason).toMatchObject({
      code: "launch-failed",
      message: expect.stringMatching(/ended at once with 9: \S+Z the model is broken/),
    });
    const nowhere = await failureOf(launcher("test", { python: async () => "/no/such/python" }).launch(spec(), signal));
    expect(nowhere.reason).toMatchObject({
      code: "launch-failed",
      message: expect.stringContaining("/no/such/python"),
    });
    expect(left()).toEqual([]);
  });

  test("a folder whose processes are gone, or never were, is seen as that and removed", async () => {
    const { containerId } = await launcher().launch(spec(), signal);
    for (const { pid } of await markedProcesses(markOf(containerId))) process.kill(pid, "SIGKILL");
    const seen = () => launcher().seen();
    await expect.poll(seen, { timeout: 20_000 }).toMatchObject([{ state: "ended", exitCode: null, url: null }]);
    rmSync(path.join(placements(), containerId, "running.json"));
    expect(await launcher().seen()).toMatchObject([{ state: "created" }]);
    // One that was being made when the machine lost its power.
    mkdirSync(path.join(placements(), "torn"));
    writeFileSync(path.join(placements(), "torn", "placement.json"), '{"workerId":');
    expect(await launcher().seen()).toHaveLength(1);
    rmSync(path.join(placements(), "torn"), { recursive: true });
    await launcher().remove(containerId, 1_000);
    expect(await launcher().seen()).toEqual([]);
  });

  test("a number that is another process's by now gets no signal", async () => {
    const { containerId } = await launcher().launch(spec(), signal);
    const stranger = spawn("sleep", ["60"], { stdio: "ignore" });
    await once(stranger, "spawn");
    const pid = stranger.pid ?? 0;
    const start = (await processStart(pid)) ?? "";
    for (const fact of [factsOf(containerId).keeper, factsOf(containerId).worker]) {
      expect(await isMarked({ ...fact, start: "1" }, markOf(containerId))).toBe(false);
      expect(await isMarked(fact, markOf("another"))).toBe(false);
    }
    await signalMarked({ pid, start }, markOf(containerId), "SIGKILL");
    // As after a restart of the machine: the numbers that were written down are a stranger's.
    for (const one of await markedProcesses(markOf(containerId))) process.kill(one.pid, "SIGKILL");
    const file = path.join(placements(), containerId, "running.json");
    const facts = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(file, JSON.stringify({ ...facts, keeper: { pid, start }, worker: { pid, start } }));
    await expect.poll(() => launcher().seen(), { timeout: 20_000 }).toMatchObject([{ state: "ended" }]);
    await launcher().remove(containerId, 500);
    expect(await processStart(pid)).toBe(start);
    stranger.kill();
  });

  test("a log that was begun anew is read on without a gap", async () => {
    const talking = path.join(folder, "talking.mjs");
    // 30 MB, past the bound of one file once.
    const talk = `
const line = "x".repeat(30_000);
let count = 0;
const more = () => { for (let n = 0; n < 20; n += 1) console.log(++count + " " + line); if (count < 1000) setTimeout(more, 20); else console.log("all said"); };
setTimeout(more, 200);`;
    writeFileSync(talking, `${workerScript}\n${talk}`);
    const own = launcher("test", { worker: `${process.execPath} ${talking}` });
    const { containerId, url } = await own.launch(spec(), signal);
    await untilUp(url);
    const heard: number[] = [];
    for await (const line of own.logs(containerId, { tail: 1_000, follow: true }, signal)) {
      const number = /^\S+Z (\d+) x/.exec(line)?.[1];
      if (number !== undefined) heard.push(Number(number));
      if (line.endsWith("all said")) await askWorker(url, "/crash", canary).catch(() => undefined);
    }
    expect(heard).toEqual(Array.from({ length: 1_000 }, (_, at) => at + 1));
    expect(readdirSync(path.join(placements(), containerId))).toContain("log.1");
    await own.remove(containerId, 1_000);
  });
});
