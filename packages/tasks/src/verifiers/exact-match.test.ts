import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { exactMatch, normalisedAnswer } from "./exact-match.ts";

describe("exact match", () => {
  test.each([
    ["The Beatles", "beatles"],
    ["  an\tApple\n", "apple"],
    ["U.S.A.", "usa"],
    ["1,000", "1000"],
    ["Jean-Luc", "jeanluc"],
    ["“quoted”", "quoted"],
    ["Ｆｕｌｌ width", "full width"],
    ["e\u0301cole", "école"],
    ["ÉCOLE", "école"],
    ["東京。", "東京"],
    ["the a an x", "x"],
    ["42\u00a0km", "42 km"],
  ])("%j is %j", (given, golden) => {
    expect(exactMatch(given, [golden])).toBe(true);
    expect(exactMatch(golden, ["something else", given])).toBe(true);
  });

  test.each([
    ["3.5", "35"],
    ["theatre", "atre"],
    ["12", "1 2"],
    ["", "the"],
    ["", ""],
    [" \n", "!"],
    ["A", "B"],
    ["école", "ecole"],
    ["Paris, France", "Paris"],
    ["constructor", "__proto__"],
  ])("%j is not %j", (given, golden) => {
    expect(exactMatch(given, [golden])).toBe(false);
  });

  test("answers of nothing but an article or marks are compared as they stand", () => {
    expect(exactMatch("a", ["A"])).toBe(true);
    expect(exactMatch("The The", ["the the"])).toBe(true);
    expect(exactMatch("!", ["!"])).toBe(true);
    expect(exactMatch("?", ["!"])).toBe(false);
  });

  test("no answer, and no accepted ones", () => {
    expect(exactMatch(null, ["x", ""])).toBe(false);
    expect(exactMatch("x", [])).toBe(false);
  });

  test("normal forms are normal, and case, spaces and marks around never matter", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
        expect(exactMatch(` ${text}\n`, [text])).toBe(normalisedAnswer(text) !== "");
        expect(normalisedAnswer(`\t ${text}  `)).toBe(normalisedAnswer(text));
      }),
    );
    fc.assert(
      fc.property(fc.stringMatching(/^[b-z0-9]{3,10}( [b-z0-9]{3,10}){0,3}$/), (text) => {
        if (/\bthe\b/.test(text)) return;
        expect(normalisedAnswer(text)).toBe(text);
        expect(exactMatch(`"The ${text.toUpperCase()}!"`, [text])).toBe(true);
      }),
    );
  });
});
