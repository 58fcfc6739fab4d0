import { describe, expect, test } from "vitest";
import {
  cutText,
  formatBytes,
  formatCount,
  formatExact,
  formatFraction,
  formatInUnit,
  formatNumber,
  formatShort,
  shortenId,
} from "./numbers.ts";

describe("formatNumber", () => {
  test.each([
    [null, "n/a"],
    [undefined, "n/a"],
    [0, "0"],
    [-0, "0"],
    [0.123456, "0.123"],
    [-1.5, "−1.50"],
    [12.345, "12.3"],
    [999.4, "999"],
    [999.6, "1,000"],
    [1234.4, "1,234"],
    [12_345, "12.3\u2009k"],
    [999_600, "1.00\u2009M"],
    [1_234_567, "1.23\u2009M"],
    [0.000123, "1.23e−4"],
    [Number.NaN, "NaN"],
    [Number.POSITIVE_INFINITY, "∞"],
    [Number.NEGATIVE_INFINITY, "−∞"],
  ])("%s → %s", (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });
  test("puts a thin space before the unit, and none on what is missing", () => {
    expect(formatNumber(2, "s")).toBe("2.00\u2009s");
    expect(formatNumber(null, "s")).toBe("n/a");
  });
});

test("counts stay exact where they are short, and take decimal text past 2^53", () => {
  expect(formatCount(9_999)).toBe("9,999");
  expect(formatCount(10_000)).toBe("10.0\u2009k");
  expect(formatCount("9007199254740993")).toBe("9,007\u2009T");
  expect(formatCount(null)).toBe("n/a");
  expect(formatExact("9007199254740993")).toBe("9,007,199,254,740,993");
  expect(formatExact(3_000_000_000)).toBe("3,000,000,000");
});

test("fractions are percentages; 0 and 100 have no digits to invent", () => {
  expect(formatFraction(0.9765)).toBe("97.7\u2009%");
  expect(formatFraction(0)).toBe("0\u2009%");
  expect(formatFraction(1)).toBe("100\u2009%");
  expect(formatFraction(null)).toBe("n/a");
  expect(formatInUnit(0.5, "fraction")).toBe("50.0\u2009%");
  expect(formatInUnit(0.5, "reward")).toBe("0.500");
});

test("bytes", () => {
  expect(formatBytes(512)).toBe("512\u2009B");
  expect(formatBytes(9_437_184)).toBe("9.00\u2009MiB");
  expect(formatBytes(null)).toBe("n/a");
});

test("text is cut between characters, never inside one", () => {
  expect(cutText("123456789🙂x", 10)).toBe("123456789");
  expect(cutText("123456789🙂x", 11)).toBe("123456789🙂");
  expect(cutText("abc", 0)).toBe("");
  expect(JSON.stringify(cutText("🙂🙂", 1))).not.toContain("\\ud8");
});

test("ids lose their middle, short ones stay", () => {
  expect(shortenId("01kv8r7q0000abcdefghijkmnp")).toBe("01kv8…jkmnp");
  expect(shortenId("short-id")).toBe("short-id");
});

describe("formatShort", () => {
  test.each([
    [1, "1.00"],
    [-0.04, "\u22120.04"],
    [0, "0"],
    [-0.001, "0"],
    [9.99, "9.99"],
    [123.4, "123"],
  ])("writes %d as %s", (value, text) => expect(formatShort(value)).toBe(text));
});
