/**
 * kill −9 of each process of the real stack in the midst of a run: it completes by itself, and its log reads as if nothing had
 * happened. ROLLDECK_REAL_SEED picks other moments.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkLog } from "../chaos/check-log.ts";
import type { KillablePart } from "./processes.ts";
import { type RealStack, startRealStack } from "./real-stack.ts";
import { tinyConfig } from "./tiny-run.ts";

const seed = Number(process.env.ROLLDECK_REAL_SEED ?? Date.now() % 100_000);
const steps = 8;
const perStep = 8;

let stack: RealStack;
beforeAll(async () => {
  stack = await startRealStack({});
});
afterAll(() => stack?.stop());

/** Uniform in [0, 1), the same for the same seed and place. */
function fraction(place: number): number {
  const mixed = Math.imul(seed ^ Math.imul(place + 1, 0x9e3779b1), 0x85ebca6b);
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
}

test(`kill −9 of worker, API and GPU worker while a run trains (seed ${seed})`, async () => {
  const { runId } = await stack.rolldeck.launchRun(tinyConfig(steps));
  const step = async () => Number(await stack.value("select step from runs where id = $1", [runId]));
  const victims: KillablePart[] = ["gpu-worker", "worker", "api", "worker", "gpu-worker"];
  for (const [place, part] of victims.entries()) {
    await stack.until(`step ${place} is done`, async () => (await step()) >= place, 90_000);
    await sleep(fraction(place) * 1_500);
    await stack.restarted(part, await stack.kill(part));
  }
  expect(await stack.ended(runId, 120_000)).toBe("completed");
  expect(await checkLog(stack.pool, runId)).toEqual([]);

  const { rows: done } = await stack.pool.query<{ step: number; state: string; rollouts: number; settled: number }>(
    `select s.step, s.state, count(o.id)::int as rollouts, count(*) filter (where o.state = 'settled')::int as settled
       from steps s join rollouts o on o.step_id = s.id where s.run_id = $1 group by 1, 2 order by 1`,
    [runId],
  );
  expect(done).toEqual(
    Array.from({ length: steps }, (_, at) => ({ step: at + 1, state: "done", rollouts: perStep, settled: perStep })),
  );
  const { rows: versions } = await stack.pool.query<{ version: number; step: number }>(
    "select version, step from policy_versions where run_id = $1 order by version",
    [runId],
  );
  expect(versions).toEqual(Array.from({ length: steps + 1 }, (_, at) => ({ version: at, step: at })));
  expect(
    await stack.value("select count(*)::int from metric_points where run_id = $1 and name = 'reward/mean'", [runId]),
  ).toBe(steps);
  // The sum over rollouts is the run's total: no turn is in it twice.
  expect(
    await stack.value(
      `select (select sampled_tokens from runs where id = $1) =
              (select sum(t.sampled_tokens) from transitions t join rollouts o on o.id = t.rollout_id where o.run_id = $1)`,
      [runId],
    ),
  ).toBe(true);
});
