import fc from "fast-check";
import { expect, test } from "vitest";
import { cutTokens } from "./cut-tokens.ts";

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at);
/** One token a digit, so its length changes with the number. */
const notice = (cut: number) => [-1, ...[...String(cut)].map((digit) => -10 - Number(digit)), -1];

test("what fits stays as it is", () => {
  const tokens = upTo(10);
  expect(cutTokens(tokens, 10, notice).tokens).toBe(tokens);
});

test("head and tail stay, and the gap says its size", () => {
  const { tokens, cutTokens: cut } = cutTokens(upTo(100), 14, notice);
  expect(tokens).toEqual([0, 1, 2, 3, 4, -1, -19, -11, -1, 96, 97, 98, 99]);
  expect(cut).toBe(91);
});

test("never longer than asked, and nothing lost but what is counted", () => {
  fc.assert(
    fc.property(fc.nat(300), fc.nat(60), fc.constantFrom(1, 2, 3), (count, max, width) => {
      const { tokens, cutTokens: cut } = cutTokens(upTo(count), max, notice, (at) => at % width === 0);
      expect(tokens.length).toBeLessThanOrEqual(Math.max(max, 0));
      expect(tokens.filter((token) => token >= 0).length + cut).toBe(count);
    }),
  );
});

test("parts begin and end where a character does", () => {
  const { tokens } = cutTokens(upTo(100), 20, notice, (at) => at % 4 === 0);
  const [head, tail] = [tokens.slice(0, tokens.indexOf(-1)), tokens.slice(tokens.lastIndexOf(-1) + 1)];
  expect(head.length % 4).toBe(0);
  expect((tail[0] ?? 1) % 4).toBe(0);
});
