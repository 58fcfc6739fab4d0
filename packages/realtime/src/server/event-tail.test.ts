import type { EventsMessage } from "@rolldeck/contracts/wire/socket";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryLog } from "../../testing/event-log.ts";
import { EventTail } from "./event-tail.ts";
import { type Outlet, Subscription } from "./subscription.ts";

const fail = (error: unknown): void => {
  throw error;
};
const quiet = (): boolean => false;
const settle = async (done: () => boolean): Promise<void> => {
  for (let turn = 0; turn < 5_000 && !done(); turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** An outlet that takes messages only when it is let. */
class SlowOutlet implements Outlet {
  readonly messages: EventsMessage[] = [];
  open = true;
  ready = () => this.open;
  drained = () => new Promise<void>((resolve) => setImmediate(resolve));
  send = (message: EventsMessage) => {
    this.messages.push(message);
  };
  get seqs(): number[] {
    return this.messages.flatMap((message) => message.events.map((event) => event.seq));
  }
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at + 1);

async function follow(log: MemoryLog, tail: EventTail, runId: string, after: number) {
  const outlet = new SlowOutlet();
  const subscription = new Subscription(tail, outlet, runId, { after, head: log.headOf(runId) }, fail);
  tail.look(runId);
  void subscription.pump();
  return { outlet, subscription, after };
}

describe("followers", () => {
  it("get exactly what follows their cursor, whatever commits, notices and slowness come between", async () => {
    const action = fc.oneof(
      fc.record({ do: fc.constant("commit" as const), count: fc.integer({ min: 1, max: 900 }), told: fc.boolean() }),
      fc.record({ do: fc.constant("follow" as const), behind: fc.nat(3_000) }),
      fc.record({ do: fc.constant("slow" as const), which: fc.nat(5), open: fc.boolean() }),
      fc.record({ do: fc.constant("pause" as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 25 }), async (actions) => {
        const log = new MemoryLog();
        log.commit("run", 0);
        const tail = new EventTail({ readEvents: log.read, onError: fail, coalesceMs: 0, ringSize: 1_000 });
        const followers: Awaited<ReturnType<typeof follow>>[] = [];
        for (const step of actions) {
          if (step.do === "commit") {
            const head = log.commit("run", step.count);
            // A notice may be lost with the connection that carried it.
            if (step.told) tail.noticed("run", head);
          } else if (step.do === "follow")
            followers.push(await follow(log, tail, "run", Math.max(0, log.headOf("run") - step.behind)));
          else if (step.do === "slow") {
            const chosen = followers[step.which];
            if (chosen) chosen.outlet.open = step.open;
          } else await new Promise((resolve) => setImmediate(resolve));
        }
        for (const { outlet } of followers) outlet.open = true;
        tail.lookAgain();
        const head = log.headOf("run");
        await settle(() => followers.every(({ outlet, after }) => outlet.seqs.length >= head - after));
        for (const { outlet, after } of followers) {
          expect(outlet.seqs).toEqual(range(after, head));
          expect(outlet.messages.every((message) => message.events.length <= 500)).toBe(true);
        }
        for (const { subscription } of followers) subscription.stop();
      }),
      { numRuns: 150 },
    );
  });

  it("share one read of the log", async () => {
    const log = new MemoryLog();
    log.commit("run", 0);
    const tail = new EventTail({ readEvents: log.read, onError: fail, coalesceMs: 0 });
    const followers = await Promise.all(Array.from({ length: 50 }, () => follow(log, tail, "run", 0)));
    await settle(quiet);
    const before = log.reads;
    tail.noticed("run", log.commit("run", 10));
    await settle(() => followers.every(({ outlet }) => outlet.seqs.length === 10));
    expect(log.reads - before).toBeLessThan(5);
    for (const { subscription } of followers) subscription.stop();
  });

  it("cost nothing while their socket is full", async () => {
    const log = new MemoryLog();
    log.commit("run", 0);
    const tail = new EventTail({ readEvents: log.read, onError: fail, coalesceMs: 0 });
    const { outlet, subscription } = await follow(log, tail, "run", 0);
    await settle(quiet);
    outlet.open = false;
    for (let n = 0; n < 20; n++) tail.noticed("run", log.commit("run", 1_000));
    await settle(quiet);
    expect(outlet.messages).toHaveLength(0);
    outlet.open = true;
    await settle(() => outlet.seqs.length === 20_000);
    expect(outlet.seqs).toEqual(range(0, 20_000));
    subscription.stop();
  });
});
