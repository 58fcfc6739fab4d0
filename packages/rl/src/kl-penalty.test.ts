import { describe, expect, it } from "vitest";
import { klPenalties } from "./kl-penalty.ts";

const row = { rolloutId: "a", mask: [null, null] as const, logprobs: [-0.5, -1], refLogprobs: [-0.6, -0.8] };

describe("klPenalties", () => {
  it("sums the estimator over a rollout's trained tokens, over all of its rows (vector D)", () => {
    const kl = { coefficient: 2, placement: "reward", estimator: "k3" } as const;
    const other = { ...row, mask: [null, "observation"] as const, logprobs: [-0.5, null], refLogprobs: [-0.6, null] };
    const found = klPenalties([row, other, { ...row, rolloutId: "b" }], kl);
    expect(found.get("a")).toBeCloseTo(2 * (0.004837 + 0.021403 + 0.004837), 5);
    expect(found.get("b")).toBeCloseTo(2 * (0.004837 + 0.021403), 5);
    expect(klPenalties([{ ...row, mask: ["ending-cut", "ending-cut"] }], kl).get("a")).toBe(0);
  });
  it("does not guess a reference", () => {
    const kl = { coefficient: 1, placement: "reward", estimator: "k1" } as const;
    expect(() => klPenalties([{ ...row, refLogprobs: [-0.6, null] }], kl)).toThrow(/rollout a/);
  });
});
