/** Groups ahead of their update while workers die: what was under way is taken over or drawn again, and nothing is trained twice or too old. */
import { keyChainPolicy } from "@rolldeck/backends/testing/scripted-worker";
import { afterEach, expect, test } from "vitest";
import { checkAsync } from "../../apps/worker/testing/check-async.ts";
import { type ChaosStack, startChaosStack } from "./chaos-stack.ts";
import { checkLog } from "./check-log.ts";
import { longConfig } from "./long-rollouts.ts";

let stack: ChaosStack | null = null;
afterEach(async () => {
  await stack?.close();
  stack = null;
});

const steps = 8;

/** The chain, after as many other look-ups as the first turn's seed says: 0 to 7. */
function unevenPolicy() {
  const chain = keyChainPolicy();
  return (asked: Parameters<typeof chain>[0]) => {
    const detours = [...asked.prompt.matchAll(/get\(k="-(\d)\.\d"\)/g)];
    const turn = asked.prompt.split("<|tool|>").length - 1;
    const planned = detours[0] === undefined ? asked.seed % 8 : Number(detours[0][1]);
    if (turn === detours.length && turn < planned) return `[get(k="-${planned}.${turn}")]`;
    return chain(asked);
  };
}

test.each([1, 2])("staleness %i: workers killed in a rollout, in an update and once more", async (maxStaleness) => {
  stack = await startChaosStack({ policy: unevenPolicy(), delayMs: 60, futureMs: 200, workers: 2 });
  const made = stack;
  const runId = await made.launch({
    ...longConfig(3, steps),
    evaluation: { samples: 0 },
    dispatcher: { name: "async", maxStaleness, bounds: { init: 64, run: 64, evaluate: 64 } },
    algorithm: { ...longConfig(3, steps).algorithm, groupSize: 4 },
  });
  const stepsDone = async () => Number(await made.value("select step from runs where id = $1", [runId]));
  const running =
    "select worker_id from rollouts where run_id = $1 and stage = 'run' and state = 'active' and turns > 0 limit 1";
  const updating = "select worker_id from steps where run_id = $1 and state = 'updating' and worker_id is not null";
  for (const [after, holder] of [
    [1, running],
    [2, updating],
    [4, running],
  ] as const) {
    const workerId = await made.until(`a worker to kill after step ${after}`, async () => {
      const id = (await stepsDone()) >= after ? await made.value(holder, [runId]) : null;
      return typeof id === "string" ? id : null;
    });
    const victim = made.workers.find(({ pid, isAlive }) => isAlive && workerId.includes(`-${pid}-`));
    await victim?.kill();
    expect(victim?.isAlive).toBe(false);
    await made.startWorker();
  }
  const status = await made.until(
    "the run ends",
    async () => {
      const now = await made.value("select status from runs where id = $1", [runId]);
      return now === "completed" || now === "failed" ? now : null;
    },
    120_000,
  );
  expect(status).toBe("completed");
  expect(await checkAsync(made.pool, runId)).toEqual([]);
  expect(await checkLog(made.pool, runId)).toEqual([]);
});
