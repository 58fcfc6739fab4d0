import { expect, test } from "vitest";
import { csvCell, toCsv } from "./csv.ts";

test.each(["=1+1", "+1+1", "-cmd", "@SUM(A1)", "\t=1"])("%j does not start a formula", (text) => {
  expect(csvCell(text).replace(/^"/, "").startsWith("'")).toBe(true);
});

test("numbers stay numbers, also as text and below zero", () => {
  expect(csvCell(-1.5)).toBe("-1.5");
  expect(csvCell("-1.5e-7")).toBe("-1.5e-7");
  expect(csvCell(null)).toBe("");
});

test("quotes, commas and line breaks are quoted", () => {
  expect(
    toCsv([
      ["a", 'say "x", y'],
      ["b\nc", 1],
    ]),
  ).toBe('a,"say ""x"", y"\r\n"b\nc",1\r\n');
});
