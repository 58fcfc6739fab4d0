import { expect, test } from "vitest";
import { formatAgo, formatDuration, formatMoment, formatUtc } from "./times.ts";

test.each([
  [null, "n/a"],
  [0, "0\u2009ms"],
  [0.25, "0.25\u2009ms"],
  [43.4, "43\u2009ms"],
  [1_234, "1.2\u2009s"],
  [59_000, "59\u2009s"],
  [59_700, "1\u2009min"],
  [61_000, "1\u2009min 1\u2009s"],
  [3_600_000, "1\u2009h"],
  [3_725_000, "1\u2009h 2\u2009min"],
  [90_000_000, "1\u2009d 1\u2009h"],
])("%s ms → %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test.each([
  [0, "0.0\u2009s"],
  [10_480, "10.5\u2009s"],
  [59_960, "1:00.0"],
  [62_400, "1:02.4"],
  [3_723_400, "1:02:03.4"],
])("%s ms since the beginning → %s", (ms, text) => {
  expect(formatMoment(ms)).toBe(text);
});

test("ago is coarse and calm; missing is n/a", () => {
  const now = Date.parse("2026-11-29T12:00:00Z");
  expect(formatAgo("2026-11-29T11:59:58Z", now)).toBe("just now");
  expect(formatAgo("2026-11-29T11:57:10Z", now)).toBe("2\u2009min ago");
  expect(formatAgo(null, now)).toBe("n/a");
});

test("exact times are UTC", () => {
  expect(formatUtc("2026-11-29T12:00:00.500+02:00")).toBe("2026-11-29 10:00:00 UTC");
  expect(formatUtc("not a time")).toBe("n/a");
});
