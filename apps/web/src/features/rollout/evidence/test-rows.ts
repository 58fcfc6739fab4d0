/** Tests of a report in the order people look for them: what fails first, then what had to be mended, then what had to stay. Pure. */
import type { TestReport } from "@rolldeck/contracts/test-report";

export type ReportedTest = TestReport["tests"][number];
export const testShows = ["all", "failing", "fail-to-pass", "pass-to-pass", "others"] as const;
export type TestShow = (typeof testShows)[number];

/** It is not as it should be; of one that nobody asks for, that it failed by itself. */
export const isFailing = ({ ok, status }: ReportedTest): boolean =>
  ok === null ? status === "failed" || status === "error" : !ok;

const rank = (test: ReportedTest): number => {
  // What nobody asks for decides nothing: it comes last even where it fails.
  if (test.wanted !== null && isFailing(test)) return 0;
  return test.wanted === "fail-to-pass" ? 1 : test.wanted === "pass-to-pass" ? 2 : isFailing(test) ? 3 : 4;
};

const shows: Readonly<Record<TestShow, (test: ReportedTest) => boolean>> = {
  all: () => true,
  failing: isFailing,
  "fail-to-pass": ({ wanted }) => wanted === "fail-to-pass",
  "pass-to-pass": ({ wanted }) => wanted === "pass-to-pass",
  others: ({ wanted }) => wanted === null,
};

/** @param words all of which its name, status or message has */
export function testRows(tests: readonly ReportedTest[], show: TestShow, words: string): ReportedTest[] {
  const wanted = words.toLowerCase().split(/\s+/u).filter(Boolean);
  return tests
    .filter(shows[show])
    .filter((test) => {
      const text = `${test.name} ${test.status} ${test.message ?? ""}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    })
    .map((test, place) => ({ test, place }))
    .sort((a, b) => rank(a.test) - rank(b.test) || a.place - b.place)
    .map(({ test }) => test);
}

export interface TestCounts {
  readonly ok: number;
  readonly all: number;
}
export const countTests = (tests: readonly ReportedTest[], show: TestShow): TestCounts => {
  const shown = tests.filter(shows[show]);
  return { ok: shown.filter((test) => !isFailing(test)).length, all: shown.length };
};
