/** What one run of tests says of an instance, by the rules of its data set. Pure. */

import { smithTestFiles } from "./eval-script.ts";
import { type LogParserName, logParserNamed, logParsers } from "./logs/log-parsers.ts";
import { parseR2e, sameOutcome } from "./logs/r2e-log.ts";
import { readTestLog } from "./logs/read-test-log.ts";
import { meaningOf } from "./logs/statuses.ts";
import { resolve, type TestResult } from "./resolve.ts";
import type { SweRow } from "./row.ts";
import { testCommandOf } from "./test-commands.ts";

export type Judgement =
  | {
      readonly kind: "judged";
      readonly resolved: boolean;
      readonly tests: readonly TestResult[];
      readonly counts: Readonly<Record<string, number>>;
      /** Why the log is not believed; null = it is. */
      readonly doubt: string | null;
    }
  /** The tests ran to their end and gave no result of any: the code under test broke them, or something else did. */
  | { readonly kind: "none"; readonly why: string }
  | { readonly kind: "unreadable"; readonly why: string };

export type JudgedRow = Pick<
  SweRow,
  "kind" | "repo" | "version" | "logParser" | "failToPass" | "passToPass" | "evalType" | "expected"
>;

/** @param exitCode of the test command; null where only the log tells it */
export function judgeRun(row: JudgedRow, output: string, exitCode: number | null): Judgement {
  return row.kind === "r2e-gym" ? judgeR2e(row, output) : judgeLists(row, output, exitCode);
}

function judgeLists(row: JudgedRow, output: string, exitCode: number | null): Judgement {
  const log = readTestLog(output, logParsers[parserOf(row)], exitCode);
  if (log.kind === "unreadable") return log;
  if (log.kind === "none") {
    const end = log.exitCode === null ? "" : ` and exited with ${log.exitCode}`;
    return { kind: "none", why: `the test command gave no result of any test${end}` };
  }
  const { resolved, tests, counts } = resolve(log.statuses, wantedOf(row), output);
  if (log.kind === "results") return { kind: "judged", resolved, tests, counts, doubt: null };
  const doubt = `the test command exited with ${log.exitCode}, and its log reports no failure: it is not believed`;
  return { kind: "judged", resolved: false, tests, counts, doubt };
}

/** SWE-smith runs only the files of tests that have to pass; the others are not asked for. */
function wantedOf({ kind, failToPass, passToPass, evalType }: JudgedRow) {
  if (kind !== "swe-smith") return { failToPass, passToPass, evalType };
  const files = new Set(smithTestFiles(failToPass));
  return { failToPass, passToPass: passToPass.filter((name) => files.has(name.split("::", 1)[0] ?? "")), evalType };
}

function parserOf({ kind, logParser, repo, version }: JudgedRow): LogParserName {
  const named = logParser === null ? null : logParserNamed(logParser);
  return named ?? (kind === "swe-smith" ? "pytest_verbose" : (testCommandOf(repo, version)?.parser ?? "pytest"));
}

function judgeR2e({ expected }: JudgedRow, output: string): Judgement {
  if (!output.includes("short test summary info")) return { kind: "none", why: "the log has no summary of tests" };
  const found = parseR2e(output);
  const wanted = new Map(Object.entries(expected ?? {}));
  const asked = [...wanted].map(([name, word]): TestResult => {
    const status = meaningOf(found.get(name));
    return { name, status, wanted: "pass-to-pass", ok: found.get(name) === word, message: `expected ${word}` };
  });
  const others = [...found]
    .filter(([name]) => !wanted.has(name))
    .map(
      ([name, word]): TestResult => ({
        name,
        status: meaningOf(word),
        wanted: null,
        ok: false,
        message: "not expected",
      }),
    );
  const bad = (test: TestResult): number => (test.ok ? 1 : 0);
  return {
    kind: "judged",
    resolved: sameOutcome(found, wanted),
    tests: [...asked, ...others].sort((a, b) => bad(a) - bad(b)).slice(0, 20_000),
    counts: { expected: wanted.size, expected_ok: asked.filter(({ ok }) => ok).length, not_expected: others.length },
    doubt: null,
  };
}
