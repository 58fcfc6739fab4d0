/**
 * Which tests a fix must turn green and which must stay so, from what the tests said before and after the true fix, several times
 * each. A test that says different things in equal runs is in neither list.
 */
import { InputError } from "@rolldeck/contracts/errors";

/** What a run of the tests said: a test's name → its status in a log's words (`PASSED`, `FAILED`, …). */
export type TestRun = ReadonlyMap<string, string>;

export interface ExpectedTests {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  /** Names left out because equal runs disagreed, or because a log can't tell them apart. */
  readonly dropped: readonly string[];
}

const passes = (status: string | undefined): boolean => status === "PASSED" || status === "XFAIL";

/**
 * Parsers of logs cut a pytest id at its first white space, and the first line of a docstring stands for a test of unittest: such names
 * may stand for several tests, and say nothing certain.
 */
const isCertain = (name: string): boolean =>
  /\s/.test(name) ? /^\w+ \([\w.]+\)$/.test(name) : !name.includes("[") || name.endsWith("]");

/** @throws InputError when the fix turns no test green, or breaks one */
export function expectedTests(id: string, before: readonly TestRun[], after: readonly TestRun[]): ExpectedTests {
  const names = new Set([...before, ...after].flatMap((run) => [...run.keys()]));
  const failToPass: string[] = [];
  const passToPass: string[] = [];
  const dropped: string[] = [];
  const broken: string[] = [];
  for (const name of [...names].sort()) {
    const was = steady(before, name);
    const is = steady(after, name);
    if (was === null || is === null || !isCertain(name)) dropped.push(name);
    else if (!was && is) failToPass.push(name);
    else if (was && is) passToPass.push(name);
    else if (was) broken.push(name);
  }
  if (failToPass.length === 0) throw refused(id, "no test fails before the fix and passes after it");
  if (broken.length > 0) throw refused(id, `the fix breaks ${broken.join(", ")}`);
  return { failToPass, passToPass, dropped };
}

/** Whether it passes in every run; null when runs disagree. A test that is missing does not pass. */
function steady(runs: readonly TestRun[], name: string): boolean | null {
  const said = new Set(runs.map((run) => passes(run.get(name))));
  return said.size === 1 ? said.has(true) : null;
}

const refused = (id: string, message: string): InputError => new InputError([{ path: id, message }]);
