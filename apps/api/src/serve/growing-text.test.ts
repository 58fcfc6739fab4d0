import fc from "fast-check";
import { expect, test } from "vitest";
import { GrowingText } from "./growing-text.ts";

/** A token is a byte. */
const decode = (tokens: readonly number[]): string => Buffer.from(tokens).toString("utf8");

test("however its tokens come, the joined text is the whole, and no character comes in halves", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 60 });
  fc.assert(
    fc.property(text, fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 400 }), (whole, sizes) => {
      const growing = new GrowingText(decode);
      const bytes = [...Buffer.from(whole.replaceAll("\u{fffd}", ""))];
      const pieces: string[] = [];
      for (let at = 0, n = 0; at < bytes.length; n++) {
        const size = sizes[n % sizes.length] ?? 1;
        pieces.push(growing.push(bytes.slice(at, at + size)));
        at += size;
      }
      pieces.push(growing.end());
      expect(pieces.join("")).toBe(decode(bytes));
      expect(pieces.some((piece) => piece.includes("\u{fffd}"))).toBe(false);
    }),
  );
});

test("what is no character comes at the end, or when it has waited long enough", () => {
  const growing = new GrowingText(decode);
  expect(growing.push([0xf0, 0x9f])).toBe("");
  expect(growing.end()).toBe("\u{fffd}");
  const never = new GrowingText(decode);
  expect(Array.from({ length: 40 }, () => never.push([0xff])).join("").length).toBeGreaterThan(15);
});
