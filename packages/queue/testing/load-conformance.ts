/** Many jobs, from and to several processes: each delivered once, and no consumer takes more than it may. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { StageJob } from "@rolldeck/contracts/jobs";
import { expect, test } from "vitest";
import { Consumer } from "../src/consumer.ts";
import { Producer } from "../src/producer.ts";
import { type QueueRig, stageJob, until } from "./queue-rig.ts";

export function testLoad(rig: QueueRig): void {
  test("adds many jobs at once, over several queues, each delivered once: 1,000 jobs", async () => {
    const seen = new Map<string, number>();
    const count = async (job: StageJob): Promise<void> => {
      const key = `${job.stage} ${job.rolloutId}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
    };
    rig.consume({ queue: "run", concurrency: 64, handle: { "run-stage": count } });
    rig.consume({ queue: "init-evaluate", concurrency: 64, handle: { stage: count } });
    const ids = Array.from({ length: 500 }, () => randomUUID());
    await rig.producer.addMany(
      ids.flatMap((id) => [
        { name: "run-stage" as const, payload: stageJob(id) },
        { name: "stage" as const, payload: stageJob(id, "init") },
      ]),
    );
    await until(() => seen.size === 1000, "a thousand jobs");
    expect([...seen.values()].every((times) => times === 1)).toBe(true);
    expect(rig.errors).toEqual([]);
  });

  test("no consumer runs more at once than it was told to, and what waits is lost to nobody", async () => {
    const other = await rig.subject.connect(rig.server);
    const running = [0, 0];
    const most = [0, 0];
    const seen = new Map<string, number>();
    const handle = (place: 0 | 1) => ({
      "run-stage": async ({ rolloutId }: StageJob) => {
        running[place] = (running[place] ?? 0) + 1;
        most[place] = Math.max(most[place] ?? 0, running[place] ?? 0);
        await sleep(3);
        running[place] = (running[place] ?? 0) - 1;
        seen.set(rolloutId, (seen.get(rolloutId) ?? 0) + 1);
      },
    });
    const ids = Array.from({ length: 200 }, () => randomUUID());
    await rig.producer.addMany(ids.map((id) => ({ name: "run-stage", payload: stageJob(id) })));
    rig.consume({ queue: "run", concurrency: 3, handle: handle(0) });
    const elsewhere = new Consumer(other, {
      queue: "run",
      concurrency: 5,
      handle: handle(1),
      onError: (error) => rig.errors.push(error),
    });
    elsewhere.start();
    await until(() => seen.size === 200, "all of them");
    await elsewhere.close(5_000);
    await other.close();
    expect([...seen.values()].every((times) => times === 1)).toBe(true);
    expect(most[0]).toBeLessThanOrEqual(3);
    expect(most[1]).toBeLessThanOrEqual(5);
    // The bound is used, or nothing was shown.
    expect(Math.max(...most)).toBeGreaterThan(1);
    expect(rig.errors).toEqual([]);
  });

  test("a job of a burst starts when it is fetched: what a closing consumer has not begun is left to others", async () => {
    const before = await rig.subject.stored(rig.server, "run");
    const ids = Array.from({ length: 300 }, () => randomUUID());
    await rig.producer.addMany(ids.map((id) => ({ name: "run-stage", payload: stageJob(id) })));
    let began = 0;
    let closed: Promise<void> | undefined;
    const consumer = rig.consume({
      queue: "run",
      concurrency: 512,
      handle: {
        "run-stage": async () => {
          began++;
          closed ??= consumer.close(20_000);
        },
      },
    });
    await until(() => closed !== undefined, "the first job");
    await closed;
    // The one that began, and at most one that was on its way.
    expect(began).toBeLessThanOrEqual(2);
    expect(await rig.subject.stored(rig.server, "run")).toBe(before + 300 - began);
    const seen = new Set<string>();
    rig.consume({
      queue: "run",
      concurrency: 512,
      handle: { "run-stage": async ({ rolloutId }) => void seen.add(rolloutId) },
    });
    await until(() => seen.size === 300 - began, "the others");
  });

  test("a large burst from several processes at once is delivered whole, each job once: 6,000 jobs", async () => {
    const others = await Promise.all([1, 2].map(() => rig.subject.connect(rig.server)));
    const producers = [rig.producer, ...others.map((each) => new Producer(each, (error) => rig.errors.push(error)))];
    const seen = new Map<string, number>();
    rig.consume({
      queue: "run",
      concurrency: 256,
      handle: {
        "run-stage": async ({ rolloutId }) => void seen.set(rolloutId, (seen.get(rolloutId) ?? 0) + 1),
      },
    });
    await Promise.all(
      producers.map(async (each) => {
        for (let pack = 0; pack < 4; pack++)
          await each.addMany(
            Array.from({ length: 500 }, () => ({ name: "run-stage", payload: stageJob(randomUUID()) })),
          );
      }),
    );
    await until(() => seen.size === 6_000, "six thousand jobs");
    expect([...seen.values()].every((times) => times === 1)).toBe(true);
    for (const each of producers.slice(1)) await each.close();
    for (const each of others) await each.close();
    expect(rig.errors).toEqual([]);
  });
}
