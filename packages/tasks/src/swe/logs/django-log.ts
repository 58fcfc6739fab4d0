/**
 * Logs of Django's own test runner (`runtests.py --verbosity 2`): unittest's `name (module.Class) ... ok`, where a test that prints
 * something has its `ok` on a later line. Read as the SWE-bench harness reads them, linear in the log.
 */
import { type StatusMap, strip, wordsOf } from "./statuses.ts";

const passEnds = [" ... ok", " ... OK", " ...  OK"] as const;

export function parseDjango(log: string): StatusMap {
  const found: StatusMap = new Map();
  let running: string | null = null;
  for (const raw of log.split("\n")) {
    const line = strip(raw);
    if (line.includes("--version is equivalent to version")) found.set("--version is equivalent to version", "PASSED");
    if (line.includes(" ... ")) running = before(line, " ... ");
    readLine(line, found);
    // Other output stood between the dots and the word.
    if (line.startsWith("ok") && running !== null) found.set(running, "PASSED");
  }
  for (const name of passedAfterOutput(log)) found.set(name, "PASSED");
  return found;
}

function readLine(line: string, found: StatusMap): void {
  const end = passEnds.find((it) => line.endsWith(it));
  if (end !== undefined) {
    // A migration's own line and the test's stand in one line there.
    const own = line.startsWith("Applying sites.0002_alter_domain_unique...test_no_migrations")
      ? strip(line.slice(line.indexOf("...") + 3))
      : line;
    found.set(own.endsWith(end) ? own.slice(0, -end.length) : own, "PASSED");
  }
  if (line.includes(" ... skipped")) found.set(before(line, " ... skipped"), "SKIPPED");
  if (line.endsWith(" ... FAIL")) found.set(before(line, " ... FAIL"), "FAILED");
  if (line.startsWith("FAIL:")) setSecond(line, "FAILED", found);
  if (line.endsWith(" ... ERROR")) found.set(before(line, " ... ERROR"), "ERROR");
  if (line.startsWith("ERROR:")) setSecond(line, "ERROR", found);
}

const before = (line: string, mark: string): string => line.slice(0, line.indexOf(mark));

function setSecond(line: string, status: string, found: StatusMap): void {
  const second = wordsOf(line)[1];
  if (second !== undefined) found.set(second, status);
}

/** Tests whose `ok` stands alone on the line after a message that Django prints at the end of set-up. */
function* passedAfterOutput(log: string): Generator<string> {
  const lines = log.split("\n");
  for (const [index, line] of lines.entries()) {
    if (lines[index + 1] !== "ok") continue;
    const request = line.endsWith("/") ? /^(.*?)\s\.\.\.\sInternal Server Error: \/.*\/$/u.exec(line)?.[1] : undefined;
    const check = /^(.*?)\s\.\.\.\sSystem check identified no issues \(0 silenced\)$/u.exec(line)?.[1];
    if (request !== undefined) yield request;
    if (check !== undefined) yield check;
  }
  yield* passedAfterNotice(lines);
}

/** The notice may run over many lines; it ends with `silenced).`, and the next line is `ok`. */
function* passedAfterNotice(lines: readonly string[]): Generator<string> {
  let waiting: string | null = null;
  for (const [index, line] of lines.entries()) {
    waiting ??= /^(.*?)\s\.\.\.\sTesting against Django installed in /u.exec(line)?.[1] ?? null;
    if (waiting === null || !line.endsWith(" silenced).") || lines[index + 1] !== "ok") continue;
    yield waiting;
    waiting = null;
  }
}
