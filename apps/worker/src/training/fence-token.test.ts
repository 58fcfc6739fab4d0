import fc from "fast-check";
import { expect, test } from "vitest";
import { fenceToken } from "./fence-token.ts";

const holder = fc.record({
  prepareClaim: fc.integer({ min: 0, max: 100_000 }),
  step: fc.integer({ min: 0, max: 1_000_000 }),
  claim: fc.integer({ min: 0, max: 1_000 }),
});

test("orders holders by prepare, then step, then claim, and stays an exact number", () => {
  fc.assert(
    fc.property(holder, holder, (a, b) => {
      const order = a.prepareClaim - b.prepareClaim || a.step - b.step || a.claim - b.claim;
      expect(Math.sign(fenceToken(a) - fenceToken(b))).toBe(Math.sign(order));
      expect(Number.isSafeInteger(fenceToken(a))).toBe(true);
    }),
  );
});
