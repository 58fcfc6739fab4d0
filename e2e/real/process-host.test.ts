/** A run on a worker that `npm start` launched as a process of its machine: the real worker, killed once in the midst of it. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { checkLog } from "../chaos/check-log.ts";
import { isAlive } from "./processes.ts";
import { type RealStack, startRealStack } from "./real-stack.ts";
import { tinyConfig } from "./tiny-run.ts";

vi.setConfig({ testTimeout: 540_000 });

let stack: RealStack;
beforeAll(async () => {
  stack = await startRealStack({ only: "api,worker,fleet" });
});
afterAll(() => stack?.stop());

const Running = z.object({ worker: z.object({ pid: z.int() }) });
/** Processes of workers, by what their keepers wrote down. */
function workers(): number[] {
  const folder = path.join(stack.dataFolder, "fleet");
  const placements = readdirSync(folder).flatMap((fleet) => {
    const here = path.join(folder, fleet, "placements");
    return readdirSync(here).map((name) => path.join(here, name, "running.json"));
  });
  return placements.map((file) => Running.parse(JSON.parse(readFileSync(file, "utf8"))).worker.pid);
}

test("the run goes on with a new process where it was, takes no step twice, and leaves no process", async () => {
  await stack.rolldeck.addFleetHost({ name: "here", endpoint: { kind: "process" }, cpuPlaces: 1, cpuMemoryMb: 4_096 });
  const { runId } = await stack.rolldeck.launchRun({ ...tinyConfig(4), backend: { fleet: { device: "cpu" } } });
  const step = async () => Number(await stack.value("select step from runs where id = $1", [runId]));
  await stack.until("two steps are done", async () => (await step()) >= 2, 240_000);
  const [first = 0] = workers();
  process.kill(first, "SIGKILL");
  expect(await stack.ended(runId, 300_000)).toBe("completed");
  expect(await checkLog(stack.pool, runId)).toEqual([]);
  expect(await stack.value("select restarts from fleet_workers where run_id = $1", [runId])).toBe(1);
  await stack.until("its worker is gone", async () => workers().length === 0, 120_000);
  expect(isAlive(first)).toBe(false);
});
