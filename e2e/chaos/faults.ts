/** What chaos does to a running stack. A fault puts back what it took away; what its victims had in hand is theirs to mend. */
import { setTimeout as sleep } from "node:timers/promises";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { connectQueue } from "@rolldeck/queue/connection";
import { Producer } from "@rolldeck/queue/producer";
import { z } from "zod";
import type { ChaosStack, WorkerUnderTest } from "./chaos-stack.ts";

export interface Fault {
  /** Processes that it ends as a crash would. */
  readonly kills: number;
  /** @throws Error when the product did not do what it promises of this fault */
  strike(stack: ChaosStack, runId: string, random: () => number): Promise<void>;
}

const ignored = (): undefined => undefined;
const oneAlive = (stack: ChaosStack, random: () => number): WorkerUnderTest | undefined => {
  const alive = stack.workers.filter(({ isAlive }) => isAlive);
  return alive[Math.floor(random() * alive.length)];
};

async function freeze(worker: WorkerUnderTest | undefined, ms: number): Promise<void> {
  worker?.signal("SIGSTOP");
  await sleep(ms);
  worker?.signal("SIGCONT");
}

export const faults = {
  "kill a worker": {
    kills: 1,
    strike: async (stack, _runId, random) => {
      await oneAlive(stack, random)?.kill();
      await stack.startWorker();
    },
  },
  "ask a worker to end": {
    kills: 0,
    strike: async (stack) => {
      const worker = stack.workers.find(({ isAlive }) => isAlive);
      worker?.signal("SIGTERM");
      await worker?.exited();
      if (worker?.exitCode !== 0) throw new Error(`a worker that was asked to end ended with ${worker?.exitCode}`);
      await stack.startWorker();
    },
  },
  "freeze a worker": {
    kills: 0,
    strike: (stack, _runId, random) => freeze(oneAlive(stack, random), 500 + random() * 3_000),
  },
  "restart Postgres": { kills: 1, strike: (stack) => stack.postgres.restart() },
  "restart the model server": {
    kills: 1,
    strike: (stack, _runId, random) => stack.gpu.restart({ downMs: random() * 1_500 }),
  },
  "pause and go on": {
    kills: 0,
    strike: async (stack, runId) => {
      await moveRun(stack.pool, runId, "pausing", null).catch(ignored);
      await sleep(1_500);
      await moveRun(stack.pool, runId, "running", null).catch(ignored);
    },
  },
} as const satisfies Readonly<Record<string, Fault>>;

/** Those that take longer, or need a queue in Redis. */
export const hardFaults = {
  "freeze a worker past its leases": {
    kills: 0,
    strike: (stack, _runId, random) => freeze(oneAlive(stack, random), 17_000),
  },
  "crash Redis": {
    kills: 1,
    strike: async (stack, _runId, random) => {
      await stack.redis?.crash();
      await sleep(random() * 1_500);
      await stack.redis?.start();
    },
  },
  "deliver every job twice": { kills: 0, strike: deliverTwice },
} as const satisfies Readonly<Record<string, Fault>>;

const Delivered = z.object({
  rolloutId: z.string(),
  attempt: z.int(),
  stage: z.enum(["init", "run", "evaluate"]),
});

/** Of rollouts in flight, at once and once more a little later: as a queue that lost its memory of what it delivered. */
async function deliverTwice(stack: ChaosStack, runId: string, random: () => number): Promise<void> {
  const { rows } = await stack.pool.query(
    `select id as "rolloutId", attempt, stage from rollouts where run_id = $1 and state in ('queued', 'active')`,
    [runId],
  );
  const connection = await connectQueue({ redisUrl: stack.redis?.url, pool: stack.pool });
  const producer = new Producer(connection);
  try {
    const jobs = z
      .array(Delivered)
      .parse(rows)
      .map((rollout) =>
        rollout.stage === "run"
          ? { name: "run-stage" as const, payload: { runId, ...rollout } }
          : { name: "stage" as const, payload: { runId, ...rollout } },
      );
    await producer.addMany(jobs);
    await sleep(random() * 2_000);
    await producer.addMany(jobs);
  } finally {
    await producer.close();
    await connection.close();
  }
}

/** Uniform in [0, 1), the same for the same seed. */
export function seededRandom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
