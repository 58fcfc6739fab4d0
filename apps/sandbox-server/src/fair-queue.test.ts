import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FairQueue, type Waiting } from "./fair-queue.ts";

const waiting = (run: string, item: number): Waiting<number> => ({ run, item, sinceMs: item });
const runs = fc.constantFrom("a", "b", "c", "d");
const all = (): boolean => true;

describe("the queue", () => {
  it("serves first come first inside a run, loses nothing and serves nothing twice", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(runs, fc.constant(null)), { maxLength: 200 }), (steps) => {
        const queue = new FairQueue<number>(1000);
        const added: Waiting<number>[] = [];
        const served: Waiting<number>[] = [];
        for (const [index, run] of steps.entries()) {
          if (run !== null) {
            const one = waiting(run, index);
            added.push(one);
            queue.add(one);
          } else {
            const next = queue.next(all);
            if (next !== null) served.push(next);
          }
        }
        for (let next = queue.next(all); next !== null; next = queue.next(all)) served.push(next);
        expect(queue.size).toBe(0);
        expect(new Set(served)).toEqual(new Set(added));
        for (const run of ["a", "b", "c", "d"]) {
          const own = (list: readonly Waiting<number>[]) => list.filter((each) => each.run === run);
          expect(own(served)).toEqual(own(added));
        }
      }),
    );
  });

  it("serves no run twice while another that fits waits", () => {
    const sizes = fc.dictionary(runs, fc.integer({ min: 1, max: 50 }), { minKeys: 1 });
    fc.assert(
      fc.property(sizes, (counts) => {
        const queue = new FairQueue<number>(1000);
        for (const [run, count] of Object.entries(counts)) {
          for (let item = 0; item < count; item += 1) queue.add(waiting(run, item));
        }
        const left = new Map(Object.entries(counts));
        const since = new Map<string, number>();
        for (let next = queue.next(all); next !== null; next = queue.next(all)) {
          left.set(next.run, (left.get(next.run) ?? 0) - 1);
          since.set(next.run, 0);
          for (const [run, count] of left) {
            if (run === next.run || count <= 0) continue;
            since.set(run, (since.get(run) ?? 0) + 1);
            // Between two turns of a run that waits, each other run has one.
            expect(since.get(run)).toBeLessThan(left.size);
          }
        }
      }),
    );
  });

  it("lets a run whose first does not fit keep its turn", () => {
    const queue = new FairQueue<number>(10);
    for (const [run, item] of [
      ["big", 100],
      ["big", 1],
      ["small", 2],
      ["small", 3],
    ] as const)
      queue.add(waiting(run, item));
    const small = ({ item }: Waiting<number>): boolean => item < 10;
    expect(queue.next(small)).toMatchObject({ run: "small", item: 2 });
    expect(queue.next(all)).toMatchObject({ run: "big", item: 100 });
    expect(queue.next(all)).toMatchObject({ run: "small", item: 3 });
    expect(queue.next(() => false)).toBeNull();
    expect(queue.size).toBe(1);
  });

  it("is bounded, and gives back what is taken out", () => {
    const queue = new FairQueue<number>(2);
    const [first, second] = [waiting("a", 1), waiting("b", 2)];
    expect([queue.add(first), queue.add(second), queue.add(waiting("c", 3))]).toEqual([true, true, false]);
    expect(queue.oldest()).toBe(first);
    expect([queue.remove(first), queue.remove(first)]).toEqual([true, false]);
    expect(queue.oldest()).toBe(second);
    expect(queue.next(all)).toBe(second);
    expect(queue.oldest()).toBeNull();
  });
});
