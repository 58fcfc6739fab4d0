import { describe, expect, test } from "vitest";
import { LeaseKeeper } from "./lease-keeper.ts";
import { abortOf, StageAbort } from "./stage-abort.ts";

function keeper(options: { renew: (claims: readonly number[]) => Promise<readonly number[]> }) {
  const clock = { now: 0 };
  const errors: unknown[] = [];
  const leases = new LeaseKeeper<number>({
    renew: options.renew,
    everyMs: 5_000,
    leaseMs: 15_000,
    now: () => clock.now,
    onError: (error) => errors.push(error),
  });
  return { leases, clock, errors };
}

describe("lease keeper", () => {
  test("renews everything in one call and aborts exactly what was lost", async () => {
    const asked: number[][] = [];
    const { leases } = keeper({
      renew: async (claims) => {
        asked.push([...claims]);
        return claims.filter((claim) => claim === 2);
      },
    });
    const [first, second] = [leases.hold("a", "run", 1), leases.hold("b", "run", 2)];
    await leases.renewAll();
    expect(asked).toEqual([[1, 2]]);
    expect(first.signal.aborted).toBe(false);
    expect(abortOf(second.signal)?.kind).toBe("fenced");
    // What was aborted is no longer asked for.
    await leases.renewAll();
    expect(asked).toEqual([[1, 2], [1]]);
  });

  test("while the database is away nothing outlives its lease", async () => {
    const { leases, clock, errors } = keeper({ renew: () => Promise.reject(new Error("away")) });
    const held = leases.hold("a", "run", 1);
    clock.now = 14_999;
    await leases.renewAll();
    expect(held.signal.aborted).toBe(false);
    clock.now = 15_000;
    await leases.renewAll();
    expect(abortOf(held.signal)?.kind).toBe("fenced");
    expect(errors).toHaveLength(2);
  });

  test("a renewal counts from before it was sent, not from its answer", async () => {
    const script = [
      async (clock: { now: number }) => {
        clock.now += 4_000;
        return [];
      },
      () => Promise.reject(new Error("away")),
    ];
    const made = keeper({ renew: () => script.shift()?.(made.clock) ?? Promise.reject(new Error("away")) });
    const held = made.leases.hold("a", "run", 1);
    await made.leases.renewAll();
    made.clock.now = 14_999;
    await made.leases.renewAll();
    expect(held.signal.aborted).toBe(false);
    made.clock.now = 15_000;
    await made.leases.renewAll();
    expect(held.signal.aborted).toBe(true);
  });

  test("aborts by run, and a released claim is left alone", () => {
    const { leases } = keeper({ renew: async () => [] });
    const [mine, other, over] = [leases.hold("a", "r1", 1), leases.hold("b", "r2", 2), leases.hold("c", "r1", 3)];
    over.release();
    leases.abortRun("r1", new StageAbort("run-ended", "stopped"));
    expect([mine, other, over].map(({ signal }) => signal.aborted)).toEqual([true, false, false]);
    expect(leases.runIds()).toEqual(["r1", "r2"]);
    expect(abortOf(mine.signal)?.kind).toBe("run-ended");
  });

  test("releasing an earlier holder does not drop a later one of the same key", () => {
    const { leases } = keeper({ renew: async () => [] });
    const first = leases.hold("a", "run", 1);
    leases.hold("a", "run", 2);
    first.release();
    expect(leases.size).toBe(1);
  });
});

test("a foreign abort reason counts as fenced: nothing may be written", () => {
  const controller = new AbortController();
  expect(abortOf(controller.signal)).toBeNull();
  controller.abort(new Error("closed"));
  expect(abortOf(controller.signal)?.kind).toBe("fenced");
});
