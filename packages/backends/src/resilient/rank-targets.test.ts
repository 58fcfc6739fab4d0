import fc from "fast-check";
import { expect, test } from "vitest";
import { rankTargets } from "./rank-targets.ts";

test("each key has one order of all targets", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 8 }), fc.string(), (names, key) => {
      const order = rankTargets(names, key);
      expect([...order].sort((a, b) => a - b)).toEqual(names.map((_, index) => index));
      expect(rankTargets(names, key)).toEqual(order);
    }),
  );
});

test("without one target, the others keep their order: nobody else moves", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { minLength: 2, maxLength: 6 }), fc.string(), (names, key) => {
      const gone = names[0];
      const before = rankTargets(names, key).map((index) => names[index]);
      const others = names.slice(1);
      const after = rankTargets(others, key).map((index) => others[index]);
      expect(after).toEqual(before.filter((name) => name !== gone));
    }),
  );
});

test("keys spread evenly", () => {
  const names = ["a", "b", "c", "d"].map((name) => `http://engine-${name}:8000`);
  const counts = [0, 0, 0, 0];
  for (let rollout = 0; rollout < 4_000; rollout++) {
    const first = rankTargets(names, `rollout-${rollout}`)[0] ?? 0;
    counts[first] = (counts[first] ?? 0) + 1;
  }
  for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
});
