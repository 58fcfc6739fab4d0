import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type LogParserName, logParserNamed, logParsers } from "./log-parsers.ts";
import { parseR2e, sameOutcome } from "./r2e-log.ts";

const log = (name: string): string =>
  readFileSync(new URL(`../../../testing/swe-logs/${name}.txt`, import.meta.url), "utf8");
const parsed = (parser: LogParserName, text: string) => Object.fromEntries(logParsers[parser](text));

/** What the modern and the old pytest said of the same tests. */
const things = {
  "tests/test_things.py::test_plain": "PASSED",
  "tests/test_things.py::test_fails": "FAILED",
  "tests/test_things.py::test_error": "ERROR",
  "tests/test_things.py::test_known": "XFAIL",
  "tests/test_things.py::TestGroup::test_inside": "PASSED",
  "tests/test_things.py::TestGroup::test_inside_fails": "FAILED",
};

describe("logs of real pytest runs", () => {
  test.each(["pytest", "pytest-7"])(
    "the summary of %s: ids end at the first blank, counts of skips are no tests",
    (name) => {
      expect(parsed("pytest", log(name))).toEqual({
        ...things,
        "tests/test_things.py::test_text[a": "PASSED",
        "tests/test_things.py::test_text[x": "PASSED",
        "tests/test_things.py::test_text[[1]]": "PASSED",
        "tests/test_things.py::test_text[/usr/lib/thing.txt]": "PASSED",
        "tests/test_things.py::test_text[\\xe9]": "PASSED",
        // A test printed a line that begins like one of the summary's: the word after it is taken for a test.
        of: "PASSED",
      });
    },
  );

  test("with options, a path as parameter keeps its last part", () => {
    const found = parsed("pytest_options", log("pytest"));
    expect(found).toMatchObject({ "tests/test_things.py::test_text[/thing.txt]": "PASSED" });
    expect(parsed("pytest_options", "PASSED t.py::a[//x/y]\nPASSED t.py::b[/x*/y]\nPASSED t.py::c[/x/y]z")).toEqual({
      "t.py::a[//x/y]": "PASSED",
      "t.py::b[/x*/y]": "PASSED",
      "t.py::c[/y]": "PASSED",
    });
  });

  test.each(["pytest", "pytest-colour"])("v2 keeps blanks in ids and sees through colours (%s)", (name) => {
    const { "tests/test_things.py::test_known": known, "tests/test_things.py::test_error": error, ...rest } = things;
    const found = parsed("pytest_v2", log(name));
    expect(found).toMatchObject({
      ...rest,
      // What stands behind the id stays with it, but for FAILED.
      "tests/test_things.py::test_known - known": known,
      "tests/test_things.py::test_error - RuntimeError: no - fixture": error,
      "tests/test_things.py::test_text[a b]": "PASSED",
      "tests/test_things.py::test_text[x - y]": "PASSED",
    });
    expect(found).not.toHaveProperty(["tests/test_things.py::test_known"]);
  });

  test("verbose lines, as SWE-smith runs them", () => {
    expect(parsed("pytest_verbose", log("pytest-verbose"))).toMatchObject({
      ...things,
      "tests/test_things.py::test_skipped": "SKIPPED",
      "tests/test_things.py::test_text[/usr/lib/thing.txt]": "PASSED",
    });
  });

  test("R2E's map has no files in its names, no skips, and only the summary", () => {
    const found = parseR2e(log("pytest-colour"));
    expect(Object.fromEntries(found)).toEqual({
      test_plain: "PASSED",
      "test_text[a b]": "PASSED",
      "test_text[x": "PASSED",
      "test_text[[1]]": "PASSED",
      "test_text[/usr/lib/thing.txt]": "PASSED",
      "test_text[\\xe9]": "PASSED",
      "TestGroup.test_inside": "PASSED",
      test_error: "ERROR",
      test_fails: "FAILED",
      "TestGroup.test_inside_fails": "FAILED",
    });
    expect(sameOutcome(found, new Map(found))).toBe(true);
    expect(sameOutcome(found, new Map(found).set("test_fails", "PASSED"))).toBe(false);
    expect(sameOutcome(found, new Map(found).set("test_more", "PASSED"))).toBe(false);
    expect(sameOutcome(new Map(), new Map([["test_plain", "PASSED"]]))).toBe(false);
    expect(parseR2e("PASSED tests/a.py::b\n").size).toBe(0);
  });
});

test("unittest's own words, as Django prints them, with output between the dots and the word", () => {
  expect(parsed("django", log("unittest"))).toEqual({
    "The area is right.": "PASSED",
    "test_breaks (test_unit.Shapes.test_breaks)": "ERROR",
    "test_noise (test_unit.Shapes.test_noise)": "PASSED",
    "test_skip (test_unit.Shapes.test_skip)": "SKIPPED",
    "test_wrong (test_unit.Shapes.test_wrong)": "FAILED",
    test_breaks: "ERROR",
    test_wrong: "FAILED",
  });
  expect(parsed("django", log("django"))).toMatchObject({
    "test_first (queries.tests.FirstTests)": "PASSED",
    "The second one says what it is about.": "PASSED",
    "test_prints (queries.tests.FirstTests)": "PASSED",
    "test_slow (queries.tests.SlowTests)": "PASSED",
    "test_wrong (queries.tests.FirstTests)": "FAILED",
    "test_breaks (queries.tests.FirstTests)": "ERROR",
    "test_needs (queries.tests.FirstTests)": "SKIPPED",
    "test_request (queries.tests.ViewTests)": "PASSED",
    "test_last (queries.tests.LastTests)": "PASSED",
    "test_notice (queries.tests.NoticeTests)": "PASSED",
  });
});

test("SymPy's words, and its headings over what failed", () => {
  expect(parsed("sympy", log("sympy"))).toEqual({
    test_first: "PASSED",
    test_second: "FAILED",
    test_third: "ERROR",
    "sympy/core/tests/test_args.py:test_second": "FAILED",
  });
});

test("small ways of other repositories", () => {
  expect(parsed("matplotlib", "PASSED t.py::a[MouseButton.LEFT-MouseButton.RIGHT]\n")).toEqual({
    "t.py::a[1-3]": "PASSED",
  });
  expect(parsed("seaborn", "tests/a.py::b PASSED [ 50%]\nFAILED tests/a.py::c - no\nSKIPPED [1] x\n")).toEqual({
    "tests/a.py::b": "PASSED",
    "tests/a.py::c": "FAILED",
  });
  expect(parsed("pydantic", "FAILED [ 90%]\ntests/a.py::b PASSED\nFAILED[x] tests/a.py::c - why\n")).toEqual({
    "tests/a.py::b": "PASSED",
    "tests/a.py::c": "FAILED",
  });
});

test("parsers are named as data sets name them", () => {
  expect(["parse_log_pytest", "pytest", "parse_log_scikit", "parse_log_pytest_pydantic"].map(logParserNamed)).toEqual([
    "pytest",
    "pytest",
    "pytest_v2",
    "pydantic",
  ]);
  expect(["parse_log_gotest", "toString", "", "parse_log_constructor"].map(logParserNamed)).toEqual([
    null,
    null,
    null,
    null,
  ]);
});

describe("any text", () => {
  const words = [
    "PASSED",
    "FAILED",
    "ERROR",
    " ",
    " - ",
    "[",
    "]",
    "::",
    "\n",
    " ... ",
    "ok",
    "\u001b[32m",
    "x",
    ".py:",
    "_",
  ];
  const text = fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ unit: "binary" })), { maxLength: 60 });

  test.each(Object.keys(logParsers) as LogParserName[])(
    "is read by %s without a throw, and names are not empty",
    (name) => {
      fc.assert(
        fc.property(text, (parts) => {
          for (const [, word] of logParsers[name](parts.join(""))) expect(word).not.toBe("");
        }),
      );
    },
  );

  test("a summary of any ids without blanks comes back whole, whatever stands around it", () => {
    const id = fc.stringMatching(/^[a-z]{1,5}\.py::[a-z_]{1,9}(\[[a-z*-]{0,6}\])?$/);
    const status = fc.constantFrom("PASSED", "FAILED", "ERROR", "XFAIL");
    const noise = fc.constantFrom("", "collected 3 items", "    assert x == y", "E   AssertionError");
    const tests = fc.uniqueArray(fc.tuple(id, status, noise), { selector: ([it]) => it, maxLength: 20 });
    fc.assert(
      fc.property(tests, (list) => {
        const lines = list.map(
          ([it, word, other]) => `${other}\n${word} ${it}${word === "FAILED" ? " - why - not" : ""}\n`,
        );
        const wanted = Object.fromEntries(list.map(([it, word]) => [it, word]));
        expect(parsed("pytest", lines.join(""))).toEqual(wanted);
        expect(parsed("pytest_v2", lines.join(""))).toEqual(wanted);
      }),
    );
  });
});
