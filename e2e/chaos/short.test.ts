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
import { type Fault, faults, seededRandom } from "./faults.ts";
import { longConfig, longPolicy } from "./long-rollouts.ts";
import { watchPools } from "./watch-pools.ts";

const seconds = Number(process.env.ROLLDECK_CHAOS_SECONDS ?? 60);
const seed = Number(process.env.ROLLDECK_CHAOS_SEED ?? 1);

let stack: ChaosStack | null = null;
afterEach(async () => {
  await stack?.close();
  stack = null;
});

test(`${seconds} s of chaos leave a log without a fault`, { timeout: (seconds + 180) * 1_000 }, async () => {
  const script = longPolicy(5);
  stack = await startChaosStack({ policy: script.policy, delayMs: 40, workers: 2 });
  const made = stack;
  const random = seededRandom(seed);
  const runId = await made.launch(longConfig(8, 1_000));
  await made.until("the first step is done", async () =>
    made.value("select 1 from runs where id = $1 and step > 0", [runId]),
  );
  const pools = watchPools(made.pool);
  const names = Object.entries<Fault>(faults);
  const done: string[] = [];
  for (const end = performance.now() + seconds * 1_000; performance.now() < end; ) {
    const [name = "", fault] = names[Math.floor(random() * names.length)] ?? [];
    await fault?.strike(made, runId, random);
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
  expect(await pools.end()).toEqual([]);
  expect(pools.looks).toBeGreaterThan(0);
  // Whatever went wrong, no log holds the key or the database's address with its password.
  const said = made.workers.map(({ output }) => output).join("");
  expect(said.includes(made.gpu.apiKey) || said.includes(made.databaseUrl)).toBe(false);
});
