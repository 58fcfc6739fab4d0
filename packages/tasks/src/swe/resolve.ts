/**
 * Whether a run of tests resolves an instance, by the rules of the SWE-bench harness: every test of FAIL_TO_PASS passed or failed
 * as expected, every test of PASS_TO_PASS also when it was skipped; a test that the log does not have failed. Stricter in one
 * place: a word that means nothing is a failure there is, not a test that does not count.
 */
import type { TestReport } from "@rolldeck/contracts/test-report";
import { failureMessages } from "./logs/read-test-log.ts";
import { meaningOf, type StatusMap } from "./logs/statuses.ts";
import { NameBeginnings } from "./name-beginnings.ts";

export interface WantedTests {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  /** `fail_only`: parsers that record failures alone; a test fails only when it is named. */
  readonly evalType: "pass_and_fail" | "fail_only";
}
export type TestResult = TestReport["tests"][number];

const maxTests = 20_000;
const maxMessages = 2_000;

export interface Resolution {
  readonly resolved: boolean;
  /** Those that fail first in each list; then the tests nobody asked for. */
  readonly tests: readonly TestResult[];
  readonly counts: Readonly<Record<string, number>>;
}

/** @param output for what pytest says about failures; "" = nothing */
export function resolve(statuses: StatusMap, wanted: WantedTests, output: string): Resolution {
  const messages = failureMessages(output, maxMessages);
  const keyOf = keysIn(statuses);
  const seen = new Set<string>();
  const judge = (list: "fail-to-pass" | "pass-to-pass", names: readonly string[]): TestResult[] =>
    names.map((name) => {
      const key = keyOf(name);
      seen.add(key ?? name);
      const word = key === null ? undefined : statuses.get(key);
      const message = messages.get(key ?? name) ?? null;
      return { name, status: meaningOf(word), wanted: list, ok: isOk(word, list, wanted.evalType), message };
    });
  const failToPass = judge("fail-to-pass", wanted.failToPass);
  const passToPass = judge("pass-to-pass", wanted.passToPass);
  const others = [...statuses].flatMap(([name, word]): TestResult[] =>
    seen.has(name)
      ? []
      : [{ name, status: meaningOf(word), wanted: null, ok: null, message: messages.get(name) ?? null }],
  );
  const asked = [...failToPass, ...passToPass];
  return {
    resolved: asked.every(({ ok }) => ok === true),
    tests: [...failingFirst(failToPass), ...failingFirst(passToPass), ...badFirst(others)].slice(0, maxTests),
    counts: {
      fail_to_pass: failToPass.length,
      fail_to_pass_ok: failToPass.filter(({ ok }) => ok).length,
      pass_to_pass: passToPass.length,
      pass_to_pass_ok: passToPass.filter(({ ok }) => ok).length,
    },
  };
}

function isOk(
  word: string | undefined,
  list: "fail-to-pass" | "pass-to-pass",
  evalType: WantedTests["evalType"],
): boolean {
  if (evalType === "fail_only") return word !== "FAILED";
  return word === "PASSED" || word === "XFAIL" || (list === "pass-to-pass" && word === "SKIPPED");
}

const passes = (word: string | undefined): boolean => word === "PASSED" || word === "XFAIL";

/**
 * The log's name of a wanted test: itself, or, for an id that data sets cut inside its parameters, the first that begins so where
 * all that do are of one mind.
 */
function keysIn(statuses: StatusMap): (name: string) => string | null {
  // Most lists have no name that is cut.
  let beginnings: NameBeginnings | null = null;
  return (name) => {
    if (statuses.has(name)) return name;
    if (countOf(name, "[") <= countOf(name, "]")) return null;
    beginnings ??= new NameBeginnings(statuses.keys(), (key) => passes(statuses.get(key)));
    const like = beginnings.find(name);
    return like !== null && (like.passing === 0 || like.passing === like.count) ? like.first : null;
  };
}

const countOf = (text: string, part: string): number => text.split(part).length - 1;

const failingFirst = (tests: readonly TestResult[]): TestResult[] => [
  ...tests.filter(({ ok }) => !ok),
  ...tests.filter(({ ok }) => ok),
];
const isBad = ({ status }: TestResult): boolean => status === "failed" || status === "error";
const badFirst = (tests: readonly TestResult[]): TestResult[] => [
  ...tests.filter(isBad),
  ...tests.filter((test) => !isBad(test)),
];
