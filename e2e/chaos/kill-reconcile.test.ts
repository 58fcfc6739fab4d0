/** A reconcile that dies at its worst moment freezes nothing: the sweep plans again, whatever the queue holds. */
import { moveRun } from "@rolldeck/db/runs/move-run";
import { afterEach, describe, expect, test } from "vitest";
import { type ChaosStack, startChaosStack } from "./chaos-stack.ts";
import { checkLog } from "./check-log.ts";
import { longConfig, longPolicy } from "./long-rollouts.ts";

let stack: ChaosStack | null = null;
afterEach(async () => {
  await stack?.close();
  stack = null;
});

/** What the product promises until the next plan, milliseconds. */
const nextPlanMs = 5_000;

describe.each(["postgres", "redis"] as const)("on %s", (queue) => {
  test.each([
    ["before its admissions are written", "insert into pool_leases"],
    ["after they are applied, before the wake is handled", "set handled_wake"],
  ])("kill −9 %s", async (_when, marker) => {
    const script = longPolicy(4);
    stack = await startChaosStack({ policy: script.policy, delayMs: 60, queue, workers: 0 });
    const made = stack;
    const victim = await made.startWorker({ ROLLDECK_CHAOS_CRASH_BEFORE: marker });
    const runId = await made.launch(longConfig(2, 3));
    await made.until("rollouts run", async () => made.value("select 1 from transitions limit 1"));
    victim.signal("SIGUSR2");
    await victim.exited();
    const survivor = await made.startWorker();
    // The survivor's own start is not the planner's time.
    const wake = await made.value("select wake from runs where id = $1", [runId]);
    await made.until(
      "the next plan is applied",
      async () => Number(await made.value("select handled_wake from runs where id = $1", [runId])) >= Number(wake),
      nextPlanMs,
    );
    expect(survivor.isAlive).toBe(true);
    expect(await checkLog(made.pool, runId)).toEqual([]);
    // What the lost reconcile had half done does not stand in the way of the end.
    await moveRun(made.pool, runId, "stopping", null);
    const status = () => made.value("select status from runs where id = $1", [runId]);
    await made.until("the run stops", async () => (await status()) === "stopped");
    expect(await checkLog(made.pool, runId)).toEqual([]);
  });
});
