import fc from "fast-check";
import { expect, test } from "vitest";
import { textPlace, textStart } from "./text-place.ts";

test("an emoji at the border is left out whole (fault 40)", () => {
  expect(textStart("123456789\u{1F642}x", 10)).toBe("123456789");
  expect(textStart("123456789\u{1F642}x", 11)).toBe("123456789\u{1F642}");
  expect(["", "x", "\u{1F642}"].map((text) => textStart(text, 0))).toEqual(["", "", ""]);
});

test("any text cut anywhere stays well formed, and is at most one unit shorter than asked (fault 40)", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.nat(40), (text, units) => {
      const start = textStart(text, units);
      expect(text.startsWith(start)).toBe(true);
      expect(start).not.toMatch(/\p{Surrogate}/u);
      expect(start.length).toBeGreaterThanOrEqual(Math.min(text.length, units) - 1);
      expect(start.length).toBeLessThanOrEqual(units);
      expect(text.slice(textPlace(text, units))).not.toMatch(/\p{Surrogate}/u);
    }),
  );
});
