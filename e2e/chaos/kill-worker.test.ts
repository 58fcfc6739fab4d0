/** What a lost worker costs: at most the model call that each of its rollouts had under way. */
import type { ScriptedWorker } from "@rolldeck/backends/testing/scripted-worker";
import { afterEach, expect, test } from "vitest";
import { type ChaosStack, startChaosStack } from "./chaos-stack.ts";
import { checkLog } from "./check-log.ts";
import { longConfig, longPolicy } from "./long-rollouts.ts";

let stack: ChaosStack<ScriptedWorker> | null = null;
afterEach(async () => {
  await stack?.close();
  stack = null;
});

const turnsOf = async (made: ChaosStack) => Number(await made.value("select count(*)::int from transitions"));
const ended = async (made: ChaosStack, runId: string) => {
  const status = await made.value("select status from runs where id = $1", [runId]);
  return status === "completed" || status === "failed" ? status : null;
};

test("kill −9 with 64 rollouts running: at most 64 turns are sampled again, none from turn 0", async () => {
  const script = longPolicy(12);
  stack = await startChaosStack({ policy: script.policy, delayMs: 250 });
  const made = stack;
  const runId = await made.launch(longConfig(8, 1));
  await made.until("every rollout has turns", async () => {
    const least = await made.value(
      "select min(turns) from rollouts where run_id = $1 and stage = 'run' and state = 'active' having count(*) = 64",
      [runId],
    );
    return Number(least) >= 3;
  });
  await made.workers[0]?.kill();
  await made.startWorker();
  expect(await made.until("the run ends", () => ended(made, runId), 90_000)).toBe("completed");
  expect(script.firstCalls()).toBe(64);
  expect(await made.value("select max(attempt) from rollouts where run_id = $1", [runId])).toBe(1);
  const again = made.gpu.stats.samples - (await turnsOf(made));
  expect(again).toBeLessThanOrEqual(64);
  expect(await checkLog(made.pool, runId)).toEqual([]);
});

test("SIGTERM: stops at a turn boundary within ten seconds, and nothing is sampled again", async () => {
  const script = longPolicy(12);
  stack = await startChaosStack({ policy: script.policy, delayMs: 150 });
  const made = stack;
  const runId = await made.launch(longConfig(8, 1));
  await made.until("turns", async () => (await turnsOf(made)) >= 128);
  const [worker] = made.workers;
  worker?.signal("SIGTERM");
  await made.until("the worker is gone", async () => worker?.isAlive === false, 10_000);
  expect(worker?.exitCode).toBe(0);
  expect(await made.value("select count(*)::int from rollouts where run_id = $1 and state = 'active'", [runId])).toBe(
    0,
  );
  await made.startWorker();
  expect(await made.until("the run ends", () => ended(made, runId), 90_000)).toBe("completed");
  expect(made.gpu.stats.samples).toBe(await turnsOf(made));
  expect(await made.value("select max(infrastructure_failures) from rollouts where run_id = $1", [runId])).toBe(0);
  expect(await checkLog(made.pool, runId)).toEqual([]);
});

test("a worker stopped past its lease and woken writes nothing more", async () => {
  const script = longPolicy(12);
  stack = await startChaosStack({ policy: script.policy, delayMs: 300 });
  const made = stack;
  const runId = await made.launch(longConfig(2, 1));
  await made.until("turns", async () => (await turnsOf(made)) >= 32);
  const [sleeper] = made.workers;
  const sleeperId = await made.value("select worker_id from rollouts where run_id = $1 limit 1", [runId]);
  sleeper?.signal("SIGSTOP");
  await made.startWorker();
  // The other one takes every rollout over once the leases are past.
  await made.until("taken over", async () => {
    const left = "select count(*)::int from rollouts where run_id = $1 and worker_id = $2 and state <> 'settled'";
    const turns = "select count(*)::int from transitions where claim > 1";
    return (await made.value(left, [runId, sleeperId])) === 0 && Number(await made.value(turns)) >= 16;
  });
  sleeper?.signal("SIGCONT");
  expect(await made.until("the run ends", () => ended(made, runId), 90_000)).toBe("completed");
  expect(script.firstCalls()).toBe(16);
  expect(await checkLog(made.pool, runId)).toEqual([]);
});
