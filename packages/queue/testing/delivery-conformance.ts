/** One job: what is delivered, when, how often, and what is left of it. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { type QueueRig, stageJob, until } from "./queue-rig.ts";

export function testDelivery(rig: QueueRig): void {
  test("delivers a job's payload to its handler, jobs of other names to theirs", async () => {
    const seen: string[] = [];
    rig.consume({
      queue: "train",
      handle: {
        prepare: async ({ runId }) => void seen.push(`prepare ${runId}`),
        update: async ({ runId, stepId }) => void seen.push(`update ${runId} ${stepId}`),
      },
    });
    await rig.producer.add("prepare", { runId: "r1" });
    await rig.producer.add("update", { runId: "r1", stepId: "s1" });
    await until(() => seen.length === 2, "both jobs");
    expect(seen.sort()).toEqual(["prepare r1", "update r1 s1"]);
    expect(rig.errors).toEqual([]);
  });

  test("delivers jobs added before any consumer was there", async () => {
    const rolloutId = randomUUID();
    await rig.producer.add("run-stage", stageJob(rolloutId));
    const seen: string[] = [];
    rig.consume({ queue: "run", handle: { "run-stage": async (job) => void seen.push(job.rolloutId) } });
    await until(() => seen.length === 1, "the waiting job");
    expect(seen).toEqual([rolloutId]);
  });

  test("the same stage may be enqueued again: a redelivery is a job of its own", async () => {
    const rolloutId = randomUUID();
    let times = 0;
    rig.consume({ queue: "run", handle: { "run-stage": async () => void times++ } });
    await rig.producer.add("run-stage", stageJob(rolloutId));
    await rig.producer.add("run-stage", stageJob(rolloutId));
    await until(() => times === 2, "both deliveries");
  });

  test("jobs that ended, well or not, are gone from the server", async () => {
    const before = await rig.subject.stored(rig.server, "train");
    let ended = 0;
    rig.consume({
      queue: "train",
      handle: {
        prepare: async () => void ended++,
        update: async () => {
          ended++;
          throw new Error("the handler's own");
        },
      },
    });
    for (let n = 0; n < 5; n++) {
      await rig.producer.add("prepare", { runId: randomUUID() });
      await rig.producer.add("update", { runId: randomUUID(), stepId: randomUUID() });
    }
    await until(() => ended === 10, "ten jobs");
    await until(async () => (await rig.subject.stored(rig.server, "train")) === before, "nothing is kept");
  });

  test("a job with a delay comes once it is due, and only once", async () => {
    const [late, soon] = [randomUUID(), randomUUID()];
    const seen: string[] = [];
    const at = new Map<string, number>();
    rig.consume({
      queue: "run",
      handle: {
        "run-stage": async ({ rolloutId }) => {
          seen.push(rolloutId);
          at.set(rolloutId, Date.now());
        },
      },
    });
    const queue = rig.connection.openQueue("run", (error) => rig.errors.push(error));
    const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true, delay: 1_500 };
    const addedAt = Date.now();
    await queue.add({ name: "run-stage", data: stageJob(late), opts });
    await rig.producer.add("run-stage", stageJob(soon));
    await until(() => seen.length === 2, "both jobs");
    expect(seen.sort()).toEqual([late, soon].sort());
    expect((at.get(late) ?? 0) - addedAt).toBeGreaterThanOrEqual(1_500 - 1);
    await queue.close();
    expect(rig.errors).toEqual([]);
  });

  test("a handler that throws ends its job: no retry, the error is reported, the next job runs", async () => {
    const rolloutId = randomUUID();
    let bad = 0;
    let good = 0;
    rig.consume({
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
    await rig.producer.add("run-stage", stageJob(rolloutId));
    await rig.producer.add("run-stage", stageJob(randomUUID()));
    await until(() => good === 1, "the job after the failing one");
    expect(bad).toBe(1);
    expect(rig.errors.map((error) => error.message)).toContain("the handler's own");
  });

  test("a payload outside the catalogue is refused where it is added, and reported where it is taken", async () => {
    // @ts-expect-error the payload lacks its step
    await expect(rig.producer.add("update", { runId: "r" })).rejects.toThrow(/stepId/);
    const queue = rig.connection.openQueue("train", (error) => rig.errors.push(error));
    let ran = 0;
    rig.consume({ queue: "train", handle: { update: async () => void ran++, prepare: async () => void ran++ } });
    const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    await queue.add({ name: "update", data: { runId: 7 }, opts });
    await queue.add({ name: "unheard-of", data: {}, opts });
    await queue.add({ name: "reconcile", data: { runId: "r" }, opts });
    await until(() => rig.errors.length === 3, "three refusals");
    expect(rig.errors.every((error) => "code" in error && error.code === "bad_job")).toBe(true);
    expect(ran).toBe(0);
    await queue.close();
  });
}
