/** What chaos does to a running stack. A fault puts back what it took away; what its victims had in hand is theirs to mend. */
import { once } from "node:events";
import { createConnection } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { connectQueue } from "@rolldeck/queue/connection";
import { Producer } from "@rolldeck/queue/producer";
import { z } from "zod";
import type { ChaosStack } from "./chaos-stack.ts";
import type { ProcessUnderTest } from "./process-under-test.ts";

export interface Fault {
  /** Processes that it ends as a crash would. */
  readonly kills: number;
  /** Absent: any stack will do. */
  readonly needs?: (stack: ChaosStack) => boolean;
  /** @throws Error when the product did not do what it promises of this fault */
  strike(stack: ChaosStack, runId: string, random: () => number): Promise<void>;
}

const ignored = (): undefined => undefined;
const oneAlive = (stack: ChaosStack, random: () => number): ProcessUnderTest | undefined => {
  const alive = stack.workers.filter(({ isAlive }) => isAlive);
  return alive[Math.floor(random() * alive.length)];
};

async function freeze(worker: ProcessUnderTest | undefined, ms: number): Promise<void> {
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

/** Those that take longer, or need more of a stack. */
export const hardFaults = {
  "freeze a worker past its leases": {
    kills: 0,
    strike: (stack, _runId, random) => freeze(oneAlive(stack, random), 17_000),
  },
  "kill the api": { kills: 1, needs: ({ api }) => api !== null, strike: async ({ api }) => api?.restart() },
  "crash Redis": {
    kills: 1,
    needs: ({ redis }) => redis !== null,
    strike: async ({ redis }, _runId, random) => {
      await redis?.crash();
      await sleep(random() * 1_500);
      await redis?.start();
    },
  },
  "deliver every job twice": { kills: 0, strike: deliverTwice },
  // Half of the time past the lease of what waits for its job.
  "hold every job back": {
    kills: 0,
    strike: (stack, _runId, random) => holdJobs(stack, random() < 0.5 ? 3_000 : 16_000),
  },
  "cancel a rollout and a group": { kills: 0, needs: ({ api }) => api !== null, strike: cancelSome },
} as const satisfies Readonly<Record<string, Fault>>;

/** Nobody can add, fetch or end a job meanwhile: whoever tries waits. */
async function holdJobs(stack: ChaosStack, ms: number): Promise<void> {
  if (stack.redis !== null) {
    await sayToRedis(stack.redis.url, `CLIENT PAUSE ${Math.round(ms)} ALL`);
    await sleep(ms);
    return;
  }
  const client = await stack.pool.connect();
  try {
    await client.query("begin");
    await client.query("lock table bullmq.job in access exclusive mode");
    await sleep(ms);
    await client.query("rollback");
  } finally {
    client.release();
  }
}

async function sayToRedis(url: string, command: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  socket.write(`${command}\r\n`);
  const [reply] = await once(socket, "data");
  socket.destroy();
  if (String(reply) !== "+OK\r\n") throw new Error(`Redis answered ${String(reply)} to ${command}`);
}

/** By a person, in the midst of it all: of two groups one whole, and one rollout of the other. */
async function cancelSome(stack: ChaosStack, runId: string, random: () => number): Promise<void> {
  const { rows } = await stack.pool.query(
    `select group_id as "groupId", min(r.id) as "rolloutId" from rollouts r join steps s on s.id = r.step_id
     where r.run_id = $1 and r.state <> 'settled' and s.state = 'gathering' group by 1 order by 1`,
    [runId],
  );
  const live = z.array(z.object({ groupId: z.string(), rolloutId: z.string() })).parse(rows);
  const at = Math.floor(random() * live.length);
  const [whole, other] = [live[at], live[(at + 1) % live.length]];
  // What settled meanwhile can't be cancelled: refused, as it should be.
  if (whole) await stack.api?.rolldeck.actOnGroup(whole.groupId, "cancel").catch(ignored);
  if (other && other !== whole) await stack.api?.rolldeck.actOnRollout(other.rolloutId, "cancel").catch(ignored);
}

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

/**
 * Deals faults so that all come equally often: shuffled rounds of the whole deck, those that kill twice in each.
 * @returns the next fault and its name
 */
export function dealFaults(stack: ChaosStack, random: () => number): () => readonly [name: string, fault: Fault] {
  const usable = Object.entries<Fault>({ ...faults, ...hardFaults }).filter(([, { needs }]) => needs?.(stack) ?? true);
  const deck = usable.flatMap((entry) => (entry[1].kills > 0 ? [entry, entry] : [entry]));
  let left: typeof deck = [];
  return () => {
    if (left.length === 0) left = [...deck];
    const [dealt] = left.splice(Math.floor(random() * left.length), 1);
    if (dealt === undefined) throw new TypeError("there is no fault to deal");
    return dealt;
  };
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
