import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resolve } from "./resolve.ts";

const wanted = (failToPass: string[], passToPass: string[] = []) =>
  ({ failToPass, passToPass, evalType: "pass_and_fail" }) as const;
const resolved = (statuses: Record<string, string>, lists: Parameters<typeof resolve>[1]): boolean =>
  resolve(new Map(Object.entries(statuses)), lists, "").resolved;

describe("the rule", () => {
  test.each([
    ["PASSED", true, true],
    ["XFAIL", true, true],
    ["SKIPPED", false, true],
    ["FAILED", false, false],
    ["ERROR", false, false],
    ["ERROR:", false, false],
    [undefined, false, false],
  ])("%s: fail-to-pass %s, pass-to-pass %s", (word, first, second) => {
    const log = { good: "PASSED", ...(word === undefined ? {} : { it: word }) };
    expect(resolved(log, wanted(["it"]))).toBe(first);
    expect(resolved(log, wanted(["good"], ["it"]))).toBe(second);
  });

  test("an id that was cut inside its parameters is any that begins so, if they are of one mind", () => {
    const cut = wanted(["t.py::a[log(photon"]);
    expect(resolved({ "t.py::a[log(photon /": "PASSED", "t.py::a[log(photon x]": "XFAIL" }, cut)).toBe(true);
    expect(resolved({ "t.py::a[log(photon /": "PASSED", "t.py::a[log(photon x]": "FAILED" }, cut)).toBe(false);
    expect(resolved({ "t.py::a[log(photon /": "FAILED" }, cut)).toBe(false);
    // Whole ids are never taken for the beginning of others.
    expect(resolved({ "t.py::ab": "PASSED" }, wanted(["t.py::a"]))).toBe(false);
    expect(resolved({ "t.py::a[x]y": "PASSED" }, wanted(["t.py::a[x]"]))).toBe(false);
  });

  test("the word of a cut id is that of the first in the log that begins so", () => {
    const cut = wanted(["good"], ["t.py::a[x"]);
    const log = (words: Record<string, string>) => ({ good: "PASSED", ...words });
    expect(resolved(log({ "t.py::a[xz]": "SKIPPED", "t.py::a[xa]": "FAILED" }), cut)).toBe(true);
    expect(resolved(log({ "t.py::a[xz]": "FAILED", "t.py::a[xa]": "SKIPPED" }), cut)).toBe(false);
  });

  test("thousands of cut ids are found in a log of hundreds of thousands of names in seconds", () => {
    const log = new Map(Array.from({ length: 200_000 }, (_, at) => [`t.py::a[${at}]`, "PASSED"]));
    const cut = Array.from({ length: 10_000 }, (_, at) => `t.py::a[${at % 5_000}`);
    expect(resolve(log, wanted(cut), "").resolved).toBe(true);
  }, 5_000);

  test("where only failures are recorded, a test fails when it is named", () => {
    const lists = { failToPass: ["a"], passToPass: ["b"], evalType: "fail_only" } as const;
    expect(resolve(new Map(), lists, "").resolved).toBe(true);
    expect(resolve(new Map([["b", "FAILED"]]), lists, "").resolved).toBe(false);
  });

  test("no test of either list may be bad, whatever the others say", () => {
    const word = fc.constantFrom("PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL");
    const log = fc.dictionary(fc.stringMatching(/^[a-h]$/), word, { noNullPrototype: true });
    const names = fc.uniqueArray(fc.constantFrom(..."abcdefgh"), { maxLength: 4 });
    fc.assert(
      fc.property(log, names, names, (statuses, first, second) => {
        const good = (name: string, words: string[]) => words.includes(statuses[name] ?? "");
        const expected =
          first.every((name) => good(name, ["PASSED", "XFAIL"])) &&
          second.every((name) => good(name, ["PASSED", "XFAIL", "SKIPPED"]));
        expect(resolved(statuses, wanted(first, second))).toBe(expected);
      }),
    );
  });
});

test("the report has failing tests first, then those nobody asked for, with what pytest says", () => {
  const statuses = new Map([
    ["other", "PASSED"],
    ["broken", "FAILED"],
    ["p1", "PASSED"],
    ["f1", "PASSED"],
    ["f2", "FAILED"],
  ]);
  const { tests, counts } = resolve(statuses, wanted(["f1", "f2"], ["p1", "gone"]), "FAILED f2 - 1 != 2\n");
  expect(tests.map(({ name, status, wanted: list, ok }) => [name, status, list, ok])).toEqual([
    ["f2", "failed", "fail-to-pass", false],
    ["f1", "passed", "fail-to-pass", true],
    ["gone", "missing", "pass-to-pass", false],
    ["p1", "passed", "pass-to-pass", true],
    ["broken", "failed", null, null],
    ["other", "passed", null, null],
  ]);
  expect(tests[0]?.message).toBe("1 != 2");
  expect(counts).toEqual({ fail_to_pass: 2, fail_to_pass_ok: 1, pass_to_pass: 2, pass_to_pass_ok: 1 });
});
