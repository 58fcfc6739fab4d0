/**
 * A minute of everything at once: workers killed, stopped and asked to end, the model server and Postgres restarted, the run
 * paused, while it trains. Afterwards its log must read as if nothing had happened. ROLLDECK_CHAOS_SECONDS makes it longer,
 * ROLLDECK_CHAOS_SEED another one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { afterEach, expect, test } from "vitest";
import { type ChaosStack, startChaosStack } from "./chaos-stack.ts";
import { checkLog } from "./check-log.ts";
import { longConfig, longPolicy } from "./long-rollouts.ts";

const seconds = Number(process.env.ROLLDECK_CHAOS_SECONDS ?? 60);
const seed = Number(process.env.ROLLDECK_CHAOS_SEED ?? 1);

let stack: ChaosStack | null = null;
afterEach(async () => {
  await stack?.close();
  stack = null;
});

/** Uniform in [0, 1), the same for the same seed. */
function seededRandom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const faults: Readonly<Record<string, (made: ChaosStack, runId: string, random: () => number) => Promise<void>>> = {
  "kill a worker": async (made, _runId, random) => {
    const alive = made.workers.filter((worker) => worker.isAlive);
    await alive[Math.floor(random() * alive.length)]?.kill();
    await made.startWorker();
  },
  "ask a worker to end": async (made) => {
    const worker = made.workers.find(({ isAlive }) => isAlive);
    worker?.signal("SIGTERM");
    await worker?.exited();
    expect(worker?.exitCode).toBe(0);
    await made.startWorker();
  },
  "freeze a worker": async (made, _runId, random) => {
    const worker = made.workers.find(({ isAlive }) => isAlive);
    worker?.signal("SIGSTOP");
    await sleep(500 + random() * 3_000);
    worker?.signal("SIGCONT");
  },
  "restart Postgres": async (made) => made.postgres.restart(),
  "restart the model server": async (made, _runId, random) => made.gpu.restart({ downMs: random() * 1_500 }),
  "pause and go on": async (made, runId) => {
    await moveRun(made.pool, runId, "pausing", null).catch(() => undefined);
    await sleep(1_500);
    await moveRun(made.pool, runId, "running", null).catch(() => undefined);
  },
};

test(`${seconds} s of chaos leave a log without a fault`, { timeout: (seconds + 180) * 1_000 }, async () => {
  const script = longPolicy(5);
  stack = await startChaosStack({ policy: script.policy, delayMs: 40, workers: 2 });
  const made = stack;
  const random = seededRandom(seed);
  const runId = await made.launch(longConfig(8, 1_000));
  await made.until("the first step is done", async () =>
    made.value("select 1 from runs where id = $1 and step > 0", [runId]),
  );
  const names = Object.keys(faults);
  const done: string[] = [];
  for (const end = performance.now() + seconds * 1_000; performance.now() < end; ) {
    const name = names[Math.floor(random() * names.length)] ?? "";
    await faults[name]?.(made, runId, random);
    done.push(name);
    await sleep(500 + random() * 2_500);
  }
  const before = Number(await made.value("select step from runs where id = $1", [runId]));
  // Left alone it goes on by itself.
  await made.until(
    "another step is done",
    async () => Number(await made.value("select step from runs where id = $1", [runId])) > before,
    90_000,
  );
  expect(await made.value("select status from runs where id = $1", [runId])).toBe("running");
  expect(await checkLog(made.pool, runId)).toEqual([]);
  await moveRun(made.pool, runId, "stopping", null);
  await made.until(
    "stopped",
    async () => (await made.value("select status from runs where id = $1", [runId])) === "stopped",
  );
  expect(await checkLog(made.pool, runId), done.join(", ")).toEqual([]);
  // Whatever went wrong, no log holds the key or the database's address with its password.
  const said = made.workers.map(({ output }) => output).join("");
  expect(said.includes(made.gpu.apiKey) || said.includes(made.databaseUrl)).toBe(false);
});
