/** Workers that go silent or close, and a server that goes away: every job comes to its end somewhere. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Consumer } from "../src/consumer.ts";
import { type QueueRig, stageJob, until } from "./queue-rig.ts";

export function testTrouble(rig: QueueRig): void {
  test("an idle queue delivers a long job once, however many look for stalled ones", async () => {
    const other = await rig.subject.connect(rig.server);
    const rolloutId = randomUUID();
    let times = 0;
    let finish = (): void => {};
    const handle = {
      "run-stage": async () => {
        times++;
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
    };
    const watching = { queue: "run", concurrency: 2, lockMs: 2_000, stalledCheckMs: 300, handle } as const;
    const elsewhere = new Consumer(other, { ...watching, onError: (error) => rig.errors.push(error) });
    elsewhere.start();
    rig.consume(watching);
    await rig.producer.add("run-stage", stageJob(rolloutId));
    await until(() => times === 1, "the delivery");
    // More than two lengths of the lock, which its holder renews.
    await sleep(5_000);
    expect(times).toBe(1);
    finish();
    await elsewhere.close(5_000);
    await other.close();
    expect(rig.errors).toEqual([]);
  });

  test("a job whose worker went silent is delivered again: twice in all, together or one after the other", async () => {
    const other = await rig.subject.connect(rig.server);
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
    await rig.producer.add("run-stage", stageJob(rolloutId));
    await until(() => silentTook === 1, "the silent worker's delivery");
    await silent.close(true);
    const seen: string[] = [];
    rig.consume({
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
    const consumer = rig.consume({
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
    await rig.producer.add("run-stage", stageJob(randomUUID()));
    await until(() => started === 1, "the first job");
    await rig.producer.add("run-stage", stageJob(randomUUID()));
    const closed = consumer.close(20_000);
    finish();
    await closed;
    expect([started, ended, consumer.active]).toEqual([1, 1, 0]);
    rig.consume({ queue: "run", handle: { "run-stage": async () => void started++ } });
    await until(() => started === 2, "the job left for others");
  });

  test("close aborts what outlasts its grace, and another worker gets the job", async () => {
    const rolloutId = randomUUID();
    let reason: unknown;
    let started = 0;
    const consumer = rig.consume({
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
    await rig.producer.add("run-stage", stageJob(rolloutId));
    await until(() => started === 1, "the job");
    await consumer.close(50);
    expect(reason).toBeInstanceOf(Error);
    const seen: string[] = [];
    rig.consume({
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
    const consumer = rig.consume({
      queue: "control",
      handle: {
        reconcile: () => {
          started++;
          return new Promise(() => {});
        },
      },
    });
    await rig.producer.add("reconcile", { runId: randomUUID() });
    await until(() => started === 1, "the job");
    await consumer.close(50);
  });

  test("an outage of the rig.server is survived: adding fails typed meanwhile, jobs flow again after it", async () => {
    const seen: string[] = [];
    let finish = (): void => {};
    rig.consume({
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
    await rig.producer.add("run-stage", stageJob("before"));
    await rig.producer.add("run-stage", stageJob("across"));
    await until(() => seen.length === 2, "both jobs before the outage");
    await rig.server.stop();
    await expect(rig.producer.add("run-stage", stageJob("during"))).rejects.toMatchObject({
      boundary: "infrastructure",
      code: "queue_unreachable",
      retryable: true,
    });
    finish();
    await rig.server.start();
    await until(async () => {
      try {
        await rig.producer.add("run-stage", stageJob("after"));
        return true;
      } catch {
        return false;
      }
    }, "adding works again");
    await until(() => seen.includes("after"), "a job after the outage");
  });

  test("a burst that the server's restart interrupts comes through whole", async () => {
    const ids = Array.from({ length: 400 }, () => randomUUID());
    const seen = new Set<string>();
    rig.consume({
      queue: "run",
      concurrency: 8,
      lockMs: 1_000,
      stalledCheckMs: 300,
      handle: {
        "run-stage": async ({ rolloutId }) => {
          await sleep(5);
          seen.add(rolloutId);
        },
      },
    });
    await rig.producer.addMany(ids.map((id) => ({ name: "run-stage", payload: stageJob(id) })));
    await until(() => seen.size >= 40, "the first of them");
    await rig.server.stop();
    const before = seen.size;
    await rig.server.start();
    await until(() => ids.every((id) => seen.has(id)), "all of them");
    expect(before).toBeLessThan(400);
  });
}
