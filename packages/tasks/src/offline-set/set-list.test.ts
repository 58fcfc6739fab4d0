import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { readSeries } from "./fetch-debian.ts";
import { isTestFile } from "./prepare-task.ts";
import { readSetList, repositoryName } from "./set-list.ts";

const list = readFileSync(resolve(import.meta.dirname, "../../../../infra/swe-set/tasks.yaml"), "utf8");

test("the list of the repository is whole, and no report names the patch or the fixed version", () => {
  const entries = readSetList(list);
  expect(entries.length).toBeGreaterThanOrEqual(8);
  const packages = new Set(entries.map(repositoryName));
  expect(packages).toContain("debian/python-django");
  expect(packages.size).toBeGreaterThanOrEqual(6);
  for (const { report, source } of entries) {
    expect(report).not.toContain("debian" in source ? source.fix : source.fixedIn);
    for (const file of "pypi" in source ? source.fix : []) expect(report).not.toContain(file);
  }
});

test("a task is one line", () => {
  const line =
    '- {id: one, source: {debian: h11, version: "1", fix: p}, test: pytest, report: something is wrong with the reader of chunks}';
  expect(readSetList(line)).toMatchObject([{ id: "one", log: "pytest", timeoutS: 120 }]);
});

test("what is wrong is named with its entry and field", () => {
  expect(() => readSetList("- {id: X}")).toThrow(/tasks\.0\.id/);
  const twice = readFileSync(resolve(import.meta.dirname, "../../../../infra/swe-set/tasks.yaml"), "utf8");
  expect(() => readSetList(`${twice}\n${twice}`)).toThrow(/is there twice/);
  const outside =
    '- {id: one, source: {pypi: a, version: "1", fixedIn: "2", fix: [../a], tests: [t]}, test: t, report: r}';
  expect(() => readSetList(outside)).toThrow(/tasks\.0/);
});

test("a series file may hold comments and options", () => {
  expect(readSeries("# first\na.patch\n\nb.diff -p1 # why\n")).toEqual(["a.patch", "b.diff"]);
});

test.each([
  ["tests/test_a.py", true],
  ["h11/tests/test_io.py", true],
  ["tests/aggregation_regress/tests.py", true],
  ["pkg/test_a.py", true],
  ["conftest.py", true],
  ["src/jinja2/sandbox.py", false],
  ["src/contest.py", false],
  ["django/test/utils.py", false],
  ["docs/testing.rst", false],
])("%s is a test: %s", (file, expected) => {
  expect(isTestFile(file)).toBe(expected);
});
