/** A reconcile that dies at its worst moment freezes nothing: the sweep plans again, whatever the queue holds. */
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
    ["before its actions are applied", "from runs where id = $1 for update"],
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
    const over = async () => {
      const status = await made.value("select status from runs where id = $1", [runId]);
      return status === "completed" || status === "failed" ? status : null;
    };
    expect(await made.until("the run ends", over, 90_000)).toBe("completed");
    expect(await checkLog(made.pool, runId)).toEqual([]);
  });
});
