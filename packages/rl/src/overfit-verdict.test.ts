import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { overfitVerdict } from "./overfit-verdict.ts";

it("by hand: slope and t of least squares", () => {
  // y = 0.1, 0.3, 0.2, 0.4, 0.5: slope 0.09; rest 0.019, so its error is √(0.019 ÷ 3 ÷ 10).
  const verdict = overfitVerdict([0.1, 0.3, 0.2, 0.4, 0.5]);
  expect(verdict).toMatchObject({ ok: true, steps: 5, first: 0.1, last: 0.5 });
  expect(verdict.slope).toBeCloseTo(0.09, 12);
  expect(verdict.t).toBeCloseTo(0.09 / Math.sqrt(0.019 / 3 / 10), 9);
  expect(verdict.text).toContain("The reward rose from 0.1 to 0.5 over 5 steps");
});

it("can't pass on too few steps", () => {
  expect(overfitVerdict([0, 1, 2, 3])).toMatchObject({ ok: false, text: expect.stringContaining("too few") });
  expect(overfitVerdict([])).toMatchObject({ ok: false, steps: 0 });
});

it("what is equal in every step was not learnt", () => {
  expect(overfitVerdict([1, 1, 1, 1, 1, 1])).toMatchObject({
    ok: false,
    text: expect.stringContaining("in every step"),
  });
});

const Rewards = fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 5, maxLength: 40 });

describe("for any rewards", () => {
  it("every figure is finite, and whoever passes has a rise beyond its noise", () => {
    fc.assert(
      fc.property(Rewards, (rewards) => {
        const { ok, slope, t, first, last } = overfitVerdict(rewards);
        expect([slope, first, last, t ?? 0].every(Number.isFinite)).toBe(true);
        if (ok) expect(slope > 0 && (t === null || t >= 2)).toBe(true);
      }),
    );
  });
  it("the reverse of what passes fails: a fall is no rise", () => {
    fc.assert(
      fc.property(Rewards, (rewards) => {
        if (overfitVerdict(rewards).ok) expect(overfitVerdict(rewards.toReversed()).ok).toBe(false);
      }),
    );
  });
  it("the scale and the zero of rewards do not matter", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 8 }), { minLength: 5, maxLength: 30 }),
        fc.constantFrom(0.125, 2, 16),
        fc.integer({ min: -4, max: 4 }),
        (counts, scale, shift) => {
          const rewards = counts.map((count) => count / 8);
          const [one, other] = [
            overfitVerdict(rewards),
            overfitVerdict(rewards.map((reward) => reward * scale + shift)),
          ];
          // At the very edge rounding decides.
          if (one.t === null || Math.abs(one.t - 2) > 1e-6) expect(other.ok).toBe(one.ok);
        },
      ),
    );
  });
});
