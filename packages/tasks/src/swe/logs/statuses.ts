/**
 * What a test log says of each test, in the words of the log. Graders compare these words exactly, so parsers keep them as they
 * stand and text is cut at the places where Python cuts it: the lists of tests in data sets were made by Python parsers.
 */
import type { TestStatus } from "@rolldeck/contracts/test-report";

/** Test → word; a later line about the same test wins. */
export type StatusMap = Map<string, string>;
export type LogParser = (log: string) => StatusMap;

export const logWords = ["FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL"] as const;

export const startsWithWord = (line: string): boolean => logWords.some((word) => line.startsWith(word));
export const endsWithWord = (line: string): boolean => logWords.some((word) => line.endsWith(word));

/** White space as Python's str.split and str.strip have it. */
const blank = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const blanks = new RegExp(`${blank}+`, "u");
const isBlank = new RegExp(`^${blank}$`, "u");

export const wordsOf = (line: string): string[] => line.split(blanks).filter((word) => word !== "");

export function strip(line: string): string {
  let start = 0;
  let end = line.length;
  while (start < end && isBlank.test(line.charAt(start))) start++;
  while (end > start && isBlank.test(line.charAt(end - 1))) end--;
  return line.slice(start, end);
}

/** Lines as Python reads them of a text file: any of the three line ends. */
export const pythonText = (log: string): string => log.replaceAll(/\r\n?/gu, "\n");

const meanings: Readonly<Record<string, TestStatus>> = {
  PASSED: "passed",
  FAILED: "failed",
  ERROR: "error",
  SKIPPED: "skipped",
  XFAIL: "xfail",
};
/** A word that means nothing is no pass. */
export const meaningOf = (word: string | undefined): TestStatus =>
  word === undefined ? "missing" : Object.hasOwn(meanings, word) ? (meanings[word] ?? "error") : "error";
