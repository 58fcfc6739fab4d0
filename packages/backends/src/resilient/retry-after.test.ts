import { expect, test } from "vitest";
import { parseRetryAfter } from "./retry-after.ts";

const now = Date.parse("Sun, 29 Nov 2026 12:00:00 GMT");

test.each([
  ["4", 4000],
  ["0", 0],
  ["1209600", 1_209_600_000],
  ["Sun, 29 Nov 2026 12:00:06 GMT", 6000],
  ["Sun, 29 Nov 2026 11:59:00 GMT", 0],
  ["-1", null],
  ["abc", null],
  ["", null],
  [undefined, null],
])("Retry-After %j is %j ms", (value, expected) => {
  expect(parseRetryAfter(value, now)).toBe(expected);
});
