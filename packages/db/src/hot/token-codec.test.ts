import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeLogprobs, decodeTokens, encodeLogprobs, encodeTokens } from "./token-codec.ts";

test("any list of ids comes back as it was", () => {
  const id = fc.oneof(
    fc.nat(1),
    fc.nat(255),
    fc.nat(151_936),
    fc.nat(2 ** 20 - 1),
    fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  );
  fc.assert(
    fc.property(fc.array(id, { maxLength: 300 }), (tokens) => {
      expect(decodeTokens(encodeTokens(tokens), tokens.length)).toEqual(tokens);
    }),
    { numRuns: 500 },
  );
});

test("a vocabulary of 2^20 takes at most 2.5 bytes a token, bytes one", () => {
  const wide = Array.from({ length: 1000 }, (_, index) => (index * 7919) % 2 ** 20);
  expect(encodeTokens(wide).length).toBeLessThanOrEqual(1 + 2500);
  expect(encodeTokens(Array.from({ length: 1000 }, (_, index) => index % 256)).length).toBe(1001);
  expect(encodeTokens([]).length).toBe(1);
  expect(encodeTokens([0, 0, 0]).length).toBe(1);
});

test("what is no token id is refused, and bytes that hold too few ids as well", () => {
  for (const bad of [-1, 1.5, 2 ** 32, Number.NaN]) expect(() => encodeTokens([bad])).toThrow(RangeError);
  expect(() => decodeTokens(encodeTokens([300, 300]), 20)).toThrow(RangeError);
  expect(() => decodeTokens(new Uint8Array(), 3)).toThrow(RangeError);
});

test("logprobs are float32, and missing stays missing", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.float({ noNaN: true }))), (logprobs) => {
      expect(decodeLogprobs(encodeLogprobs(logprobs))).toEqual(logprobs);
    }),
  );
});
