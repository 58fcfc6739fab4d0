/** What every queue must do, run against each real server. No timing is asserted: each test waits for what must come. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { StageJob } from "@rolldeck/contracts/jobs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { QueueConnection } from "../src/connection.ts";
import { Consumer, type ConsumerOptions } from "../src/consumer.ts";
import { Producer } from "../src/producer.ts";
import type { RestartableServer } from "./postgres.ts";

export interface QueueUnderTest {
  readonly name: string;
  start(): Promise<RestartableServer>;
  /** A fresh connection, as another process would open one. `close` also ends what `connect` opened. */
  connect(server: RestartableServer): Promise<QueueConnection>;
}

export const stageJob = (rolloutId: string, stage: StageJob["stage"] = "run"): StageJob => ({
  runId: "run1",
  rolloutId,
  attempt: 1,
  stage,
});

/** Waits until `check` holds. */
export async function until(check: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 75_000;
  while (!(await check())) {
    if (Date.now() > deadline) throw new Error(`never happened: ${what}`);
    await sleep(10);
  }
}

export function describeQueue(subject: QueueUnderTest): void {
  describe(`queue on ${subject.name}`, () => {
    let server: RestartableServer;
    let connection: QueueConnection;
    let producer: Producer;
    let errors: Error[];
    const open: Consumer[] = [];

    beforeAll(async () => {
      server = await subject.start();
    });
    afterAll(() => server?.remove());
    beforeEach(async () => {
      errors = [];
      connection = await subject.connect(server);
      producer = new Producer(connection, (error) => errors.push(error));
    });
    afterEach(async () => {
      await Promise.all(open.splice(0).map((consumer) => consumer.close(5000)));
      await producer.close();
      await connection.close();
    });

    const consume = (options: Pick<ConsumerOptions, "queue" | "handle"> & Partial<ConsumerOptions>): Consumer => {
      const consumer = new Consumer(connection, {
        concurrency: 8,
        onError: (error) => errors.push(error),
        ...options,
      });
      consumer.start();
      open.push(consumer);
      return consumer;
    };

    test("delivers a job's payload to its handler, jobs of other names to theirs", async () => {
      const seen: string[] = [];
      consume({
        queue: "train",
        handle: {
          prepare: async ({ runId }) => void seen.push(`prepare ${runId}`),
          update: async ({ runId, stepId }) => void seen.push(`update ${runId} ${stepId}`),
        },
      });
      await producer.add("prepare", { runId: "r1" });
      await producer.add("update", { runId: "r1", stepId: "s1" });
      await until(() => seen.length === 2, "both jobs");
      expect(seen.sort()).toEqual(["prepare r1", "update r1 s1"]);
      expect(errors).toEqual([]);
    });

    test("delivers jobs added before any consumer was there", async () => {
      const rolloutId = randomUUID();
      await producer.add("run-stage", stageJob(rolloutId));
      const seen: string[] = [];
      consume({ queue: "run", handle: { "run-stage": async (job) => void seen.push(job.rolloutId) } });
      await until(() => seen.length === 1, "the waiting job");
      expect(seen).toEqual([rolloutId]);
    });

    test("adds many jobs at once, over several queues, each delivered once: 1,000 jobs", async () => {
      const seen = new Map<string, number>();
      const count = async (job: StageJob): Promise<void> => {
        const key = `${job.stage} ${job.rolloutId}`;
        seen.set(key, (seen.get(key) ?? 0) + 1);
      };
      consume({ queue: "run", concurrency: 64, handle: { "run-stage": count } });
      consume({ queue: "init-evaluate", concurrency: 64, handle: { stage: count } });
      const ids = Array.from({ length: 500 }, () => randomUUID());
      await producer.addMany(
        ids.flatMap((id) => [
          { name: "run-stage" as const, payload: stageJob(id) },
          { name: "stage" as const, payload: stageJob(id, "init") },
        ]),
      );
      await until(() => seen.size === 1000, "a thousand jobs");
      expect([...seen.values()].every((times) => times === 1)).toBe(true);
      expect(errors).toEqual([]);
    });

    test("the same stage may be enqueued again: a redelivery is a job of its own", async () => {
      const rolloutId = randomUUID();
      let times = 0;
      consume({ queue: "run", handle: { "run-stage": async () => void times++ } });
      await producer.add("run-stage", stageJob(rolloutId));
      await producer.add("run-stage", stageJob(rolloutId));
      await until(() => times === 2, "both deliveries");
    });

    test("a burst of wake-ups while one is waiting costs one delivery", async () => {
      const runId = randomUUID();
      for (let n = 0; n < 20; n++) await producer.add("reconcile", { runId });
      await producer.add("reconcile", { runId: `${runId}-last` });
      const seen: string[] = [];
      consume({ queue: "control", concurrency: 1, handle: { reconcile: async (job) => void seen.push(job.runId) } });
      await until(() => seen.includes(`${runId}-last`), "the last run's wake-up");
      expect(seen.filter((id) => id === runId)).toHaveLength(1);
    });

    test("a wake-up that arrives while its run is reconciled is never lost, and a burst of them costs one more", async () => {
      const runId = randomUUID();
      // The row's wake, as a reconciler would read it when it starts.
      let wake = 0;
      let handled = -1;
      let rounds = 0;
      const gates: (() => void)[] = [];
      consume({
        queue: "control",
        handle: {
          reconcile: async () => {
            rounds++;
            const read = wake;
            await new Promise<void>((resolve) => gates.push(resolve));
            handled = read;
          },
        },
      });
      await producer.add("reconcile", { runId });
      await until(() => gates.length === 1, "the first round");
      for (let n = 0; n < 10; n++) {
        wake++;
        await producer.add("reconcile", { runId });
      }
      gates[0]?.();
      await until(() => gates.length === 2, "the second round");
      gates[1]?.();
      await until(() => handled === wake, "the last wake handled");
      expect(rounds).toBe(2);
    });

    test("wake-ups raised at random moments are all handled by the end", async () => {
      const runId = randomUUID();
      let wake = 0;
      let handled = 0;
      consume({
        queue: "control",
        handle: {
          reconcile: async () => {
            const read = wake;
            await sleep(Math.random() * 5);
            handled = Math.max(handled, read);
          },
        },
      });
      for (let n = 0; n < 100; n++) {
        wake++;
        await producer.add("reconcile", { runId });
        if (n % 7 === 0) await sleep(Math.random() * 8);
      }
      await until(() => handled === wake, "the last wake handled");
    });

    test("a handler that throws ends its job: no retry, the error is reported, the next job runs", async () => {
      const rolloutId = randomUUID();
      let bad = 0;
      let good = 0;
      consume({
        queue: "run",
        concurrency: 1,
        handle: {
          "run-stage": async (job) => {
            if (job.rolloutId === rolloutId) {
              bad++;
              throw new Error("the handler's own");
            }
            good++;
          },
        },
      });
      await producer.add("run-stage", stageJob(rolloutId));
      await producer.add("run-stage", stageJob(randomUUID()));
      await until(() => good === 1, "the job after the failing one");
      expect(bad).toBe(1);
      expect(errors.map((error) => error.message)).toContain("the handler's own");
    });

    test("a failing reconcile does not hold back the next wake-up", async () => {
      const runId = randomUUID();
      let times = 0;
      consume({
        queue: "control",
        handle: {
          reconcile: async () => {
            times++;
            if (times === 1) throw new Error("once");
          },
        },
      });
      await producer.add("reconcile", { runId });
      await until(() => times === 1, "the failing round");
      await producer.add("reconcile", { runId });
      await until(() => times === 2, "the round after it");
    });

    test("a payload outside the catalogue is refused where it is added, and reported where it is taken", async () => {
      // @ts-expect-error the payload lacks its step
      await expect(producer.add("update", { runId: "r" })).rejects.toThrow(/stepId/);
      const queue = connection.openQueue("train", (error) => errors.push(error));
      let ran = 0;
      consume({ queue: "train", handle: { update: async () => void ran++, prepare: async () => void ran++ } });
      const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true };
      await queue.add({ name: "update", data: { runId: 7 }, opts });
      await queue.add({ name: "unheard-of", data: {}, opts });
      await queue.add({ name: "reconcile", data: { runId: "r" }, opts });
      await until(() => errors.length === 3, "three refusals");
      expect(errors.every((error) => "code" in error && error.code === "bad_job")).toBe(true);
      expect(ran).toBe(0);
      await queue.close();
    });

    test("a job whose worker went silent is delivered again: twice in all, together or one after the other", async () => {
      const other = await subject.connect(server);
      const rolloutId = randomUUID();
      let silentTook = 0;
      // A worker that takes the job and then renews nothing, as after a long pause or a kill.
      const silent = other.openWorker("run", {
        concurrency: 1,
        lockMs: 300,
        stalledCheckMs: 1_000,
        onError: () => {},
        process: () => {
          silentTook++;
          return new Promise(() => {});
        },
      });
      void silent.run();
      await producer.add("run-stage", stageJob(rolloutId));
      await until(() => silentTook === 1, "the silent worker's delivery");
      await silent.close(true);
      const seen: string[] = [];
      consume({
        queue: "run",
        stalledCheckMs: 200,
        lockMs: 1000,
        handle: { "run-stage": async (job) => void seen.push(job.rolloutId) },
      });
      await until(() => seen.length === 1, "the second delivery");
      expect(seen).toEqual([rolloutId]);
      await other.close();
    });

    test("close waits for what runs and takes nothing new", async () => {
      let finish = (): void => {};
      let started = 0;
      let ended = 0;
      const consumer = consume({
        queue: "run",
        concurrency: 1,
        handle: {
          "run-stage": async () => {
            started++;
            await new Promise<void>((resolve) => {
              finish = resolve;
            });
            ended++;
          },
        },
      });
      await producer.add("run-stage", stageJob(randomUUID()));
      await until(() => started === 1, "the first job");
      await producer.add("run-stage", stageJob(randomUUID()));
      const closed = consumer.close(20_000);
      finish();
      await closed;
      expect([started, ended, consumer.active]).toEqual([1, 1, 0]);
      consume({ queue: "run", handle: { "run-stage": async () => void started++ } });
      await until(() => started === 2, "the job left for others");
    });

    test("close aborts what outlasts its grace, and another worker gets the job", async () => {
      const rolloutId = randomUUID();
      let reason: unknown;
      let started = 0;
      const consumer = consume({
        queue: "run",
        lockMs: 500,
        stalledCheckMs: 200,
        handle: {
          "run-stage": (_job, signal) => {
            started++;
            return new Promise((_resolve, reject) => {
              signal.addEventListener("abort", () => {
                reason = signal.reason;
                reject(signal.reason);
              });
            });
          },
        },
      });
      await producer.add("run-stage", stageJob(rolloutId));
      await until(() => started === 1, "the job");
      await consumer.close(50);
      expect(reason).toBeInstanceOf(Error);
      const seen: string[] = [];
      consume({
        queue: "run",
        lockMs: 500,
        stalledCheckMs: 200,
        handle: { "run-stage": async (job) => void seen.push(job.rolloutId) },
      });
      await until(() => seen.length === 1, "the job at another worker");
      expect(seen).toEqual([rolloutId]);
    });

    test("a handler that ignores its signal does not hold up close", async () => {
      let started = 0;
      const consumer = consume({
        queue: "control",
        handle: {
          reconcile: () => {
            started++;
            return new Promise(() => {});
          },
        },
      });
      await producer.add("reconcile", { runId: randomUUID() });
      await until(() => started === 1, "the job");
      await consumer.close(50);
    });

    test("an outage of the server is survived: adding fails typed meanwhile, jobs flow again after it", async () => {
      const seen: string[] = [];
      let finish = (): void => {};
      consume({
        queue: "run",
        lockMs: 2000,
        stalledCheckMs: 500,
        handle: {
          "run-stage": async (job) => {
            seen.push(job.rolloutId);
            if (seen.length === 2)
              await new Promise<void>((resolve) => {
                finish = resolve;
              });
          },
        },
      });
      await producer.add("run-stage", stageJob("before"));
      await producer.add("run-stage", stageJob("across"));
      await until(() => seen.length === 2, "both jobs before the outage");
      await server.stop();
      await expect(producer.add("run-stage", stageJob("during"))).rejects.toMatchObject({
        boundary: "infrastructure",
        code: "queue_unreachable",
        retryable: true,
      });
      finish();
      await server.start();
      await until(async () => {
        try {
          await producer.add("run-stage", stageJob("after"));
          return true;
        } catch {
          return false;
        }
      }, "adding works again");
      await until(() => seen.includes("after"), "a job after the outage");
    });
  });
}
