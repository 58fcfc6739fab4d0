/** On reports that Vitest itself writes: it says in no other place what they hold. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseVitestReport, resultOf, slowestFiles, type VitestReport } from "./vitest-report.ts";

const root = path.resolve(import.meta.dirname, "../..");
const files = {
  "adds.test.ts": `
    test("is right", () => { expect(1 + 1).toBe(2); });
    describe("adding", () => { test("is wrong", () => { expect(1 + 1, "the sum").toBe(3); }); });
    test.skip("is left out", () => {});`,
  "broken.test.ts": `throw new Error("no such tables");`,
  "hook.test.ts": `afterAll(() => { throw new Error("the server is gone"); }); test("is fine", () => {});`,
};

let folder: string;
let report: VitestReport;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-report-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  const written = path.join(folder, "report.json");
  const vitest = path.join(root, "node_modules/vitest/vitest.mjs");
  const flags = ["run", "--root", folder, "--globals", "--reporter=json", `--outputFile=${written}`];
  const { status, stderr } = spawnSync(process.execPath, [vitest, ...flags], { cwd: folder, encoding: "utf8" });
  expect(status, stderr).toBe(1);
  report = parseVitestReport(readFileSync(written, "utf8"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a failed test is told by file and full name, and with its message", () => {
  const { passed, failed, failures } = resultOf(report, folder);
  expect({ passed, failed }).toEqual({ passed: 2, failed: 3 });
  const [wrong] = failures.filter(({ name }) => name.startsWith("adds"));
  expect(wrong?.name).toBe("adds.test.ts: adding is wrong");
  expect(wrong?.message).toContain("the sum: expected 2 to be 3");
  // Of the places it passed through only ours are told.
  expect(wrong?.message.split("\n").filter((line) => line.startsWith("    at "))).toEqual([
    expect.stringContaining("adds.test.ts:3"),
  ]);
});

test("a file that could not run, or whose hook threw, is a failure and never nothing", () => {
  const { failures } = resultOf(report, folder);
  expect(failures.find(({ name }) => name === "broken.test.ts: could not run")?.message).toContain("no such tables");
  expect(failures.find(({ name }) => name === "hook.test.ts: could not run")?.message).toContain("the server is gone");
});

test("a test that is left out is a skip with its name", () => {
  expect(resultOf(report, folder).skipped).toEqual([{ name: "adds.test.ts: is left out", reason: "skipped" }]);
});

test("the slowest files come first", () => {
  const file = (name: string, seconds: number) => {
    const place = path.join(root, name);
    return { name: place, status: "passed", startTime: 1_000, endTime: 1_000 + seconds * 1_000, assertionResults: [] };
  };
  const made = { testResults: [file("a.test.ts", 2), file("b.test.ts", 9), file("c.test.ts", 4)] };
  expect(slowestFiles(made, root, 2)).toBe("b.test.ts 9 s, c.test.ts 4 s");
});
