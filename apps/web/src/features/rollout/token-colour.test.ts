import { expect, test } from "vitest";
import { gap, ratio, tokenBackground, tokenStrength, visibleText } from "./token-colour.ts";
import type { Token } from "./token-store.ts";

const token = (more: Partial<Token> = {}): Token => ({
  index: 0,
  id: 1,
  text: "a",
  origin: "sampled",
  turn: 0,
  logprob: -1,
  trainerLogprob: -0.9,
  advantage: 0.5,
  maskReason: null,
  policyVersion: 3,
  ...more,
});

test("ratio and gap need both log-probs: missing is missing, never 0", () => {
  expect(ratio(token())).toBeCloseTo(Math.exp(0.1), 12);
  expect(gap(token())).toBeCloseTo(0.1, 12);
  expect(ratio(token({ trainerLogprob: null }))).toBeNull();
  expect(gap(token({ logprob: null }))).toBeNull();
  expect(tokenStrength(token({ logprob: null }), "logprob", 1)).toBeNull();
});

test("light is likely; the scale ends below one percent", () => {
  expect(tokenStrength(token({ logprob: 0 }), "logprob", 1)).toBe(0);
  expect(tokenStrength(token({ logprob: -50 }), "logprob", 1)).toBe(1);
  expect(tokenBackground(token({ logprob: 0 }), "logprob", 1)).toBeUndefined();
});

test("advantage keeps its sign against the largest one shown", () => {
  expect(tokenStrength(token({ advantage: -0.25 }), "advantage", 0.5)).toBe(-0.5);
  expect(tokenStrength(token(), "advantage", 0)).toBeNull();
  expect(tokenBackground(token({ advantage: -0.5 }), "advantage", 0.5)).toContain("--reward-low");
});

test("characters without width are shown", () => {
  expect(visibleText("a\n\tb\r\0")).toBe("a↵\n→\tb␍␀");
  expect(visibleText("")).toBe("∅");
});
