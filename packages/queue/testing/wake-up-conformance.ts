/** Wake-ups of a run: never lost, and a burst of them costs one more round. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Producer } from "../src/producer.ts";
import { type QueueRig, until } from "./queue-rig.ts";

export function testWakeUps(rig: QueueRig): void {
  test("wake-ups of one run from several processes while it is reconciled cost one more round", async () => {
    const other = await rig.subject.connect(rig.server);
    const elsewhere = new Producer(other, (error) => rig.errors.push(error));
    const runId = randomUUID();
    const gates: (() => void)[] = [];
    const handle = { reconcile: () => new Promise<void>((resolve) => gates.push(resolve)) };
    rig.consume({ queue: "control", handle });
    await rig.producer.add("reconcile", { runId });
    await until(() => gates.length === 1, "the first round");
    await Promise.all(
      [1, 2, 3].flatMap(() => [rig.producer, elsewhere].map((each) => each.add("reconcile", { runId }))),
    );
    gates[0]?.();
    await until(() => gates.length === 2, "the second round");
    gates[1]?.();
    await elsewhere.add("reconcile", { runId });
    await until(() => gates.length === 3, "the round of a wake-up after that");
    gates[2]?.();
    await elsewhere.close();
    await other.close();
    expect(gates).toHaveLength(3);
  });

  test("a burst of wake-ups while one is waiting costs one delivery", async () => {
    const runId = randomUUID();
    for (let n = 0; n < 20; n++) await rig.producer.add("reconcile", { runId });
    await rig.producer.add("reconcile", { runId: `${runId}-last` });
    const seen: string[] = [];
    rig.consume({ queue: "control", concurrency: 1, handle: { reconcile: async (job) => void seen.push(job.runId) } });
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
    rig.consume({
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
    await rig.producer.add("reconcile", { runId });
    await until(() => gates.length === 1, "the first round");
    for (let n = 0; n < 10; n++) {
      wake++;
      await rig.producer.add("reconcile", { runId });
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
    rig.consume({
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
      await rig.producer.add("reconcile", { runId });
      if (n % 7 === 0) await sleep(Math.random() * 8);
    }
    await until(() => handled === wake, "the last wake handled");
  });

  test("a failing reconcile does not hold back the next wake-up", async () => {
    const runId = randomUUID();
    let times = 0;
    rig.consume({
      queue: "control",
      handle: {
        reconcile: async () => {
          times++;
          if (times === 1) throw new Error("once");
        },
      },
    });
    await rig.producer.add("reconcile", { runId });
    await until(() => times === 1, "the failing round");
    await rig.producer.add("reconcile", { runId });
    await until(() => times === 2, "the round after it");
  });
}
