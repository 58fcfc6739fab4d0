/**
 * What a test run's log says, by the rules of the SWE-bench harness: only what stands between the markers counts (all of it where
 * nothing does), and a run that ended badly although its log reports no failure is not believed.
 */

import { headWithin } from "@rolldeck/agent/core/cut-text";
import { type LogParser, logWords, pythonText, type StatusMap } from "./statuses.ts";

export const startMark = ">>>>> Start Test Output";
export const endMark = ">>>>> End Test Output";
export const exitCodeMark = ">>>>> Test Exit Code";

const badMarks = [
  ">>>>> Patch Apply Failed",
  ">>>>> Reset Failed",
  ">>>>> Tests Errored",
  ">>>>> Tests Timed Out",
] as const;

export type TestLog =
  | { readonly kind: "results"; readonly statuses: StatusMap; readonly exitCode: number | null }
  /** The tests began and ended, and no result of any can be read. */
  | { readonly kind: "none"; readonly exitCode: number | null }
  /** It reports no failure, and the test command says there was one. */
  | { readonly kind: "contradiction"; readonly statuses: StatusMap; readonly exitCode: number }
  /** Not a log of a whole run. */
  | { readonly kind: "unreadable"; readonly why: string };

/** @param exitCode of the test command, learned without the log; null = what the log says counts */
export function readTestLog(output: string, parse: LogParser, exitCode: number | null): TestLog {
  const log = pythonText(output);
  const bad = badMarks.find((mark) => log.includes(mark));
  if (bad !== undefined) return { kind: "unreadable", why: `the log says "${bad}"` };
  const [, begun] = log.split(startMark, 2);
  if (begun === undefined) return { kind: "unreadable", why: "the tests did not begin: the log has no start marker" };
  if (!log.includes(endMark)) return { kind: "unreadable", why: "the tests did not end: the log has no end marker" };
  const code = exitCode ?? exitCodeOf(log);
  const between = parse(begun.split(endMark, 1)[0] ?? "");
  const statuses = between.size > 0 ? between : wholeWords(parse(log));
  if (statuses.size === 0) return { kind: "none", exitCode: code };
  const failed = [...statuses.values()].some((status) => status === "FAILED" || status === "ERROR");
  if (code !== null && code !== 0 && !failed) return { kind: "contradiction", statuses, exitCode: code };
  return { kind: "results", statuses, exitCode: code };
}

/** Outside the markers, lines of other programs ("ERROR: pip's …") look like results. */
const wholeWords = (statuses: StatusMap): StatusMap =>
  new Map([...statuses].filter(([, word]) => logWords.some((whole) => whole === word)));

function exitCodeOf(log: string): number | null {
  const found = new RegExp(`${exitCodeMark}:\\s*(-?\\d{1,9})`, "u").exec(log)?.[1];
  return found === undefined ? null : Number(found);
}

/** What pytest says of each failed test, first line of each. At most `most`. */
export function failureMessages(output: string, most: number): ReadonlyMap<string, string> {
  const messages = new Map<string, string>();
  for (const line of pythonText(output).split("\n")) {
    if (!line.startsWith("FAILED ") && !line.startsWith("ERROR ")) continue;
    const name = line.slice(line.indexOf(" ") + 1);
    const cut = name.indexOf(" - ");
    if (cut !== -1) messages.set(name.slice(0, cut), headWithin(name.slice(cut + 3), 2000));
    if (messages.size >= most) break;
  }
  return messages;
}
