/**
 * Logs of pytest, read as the SWE-bench harness and its followers read them: from the short test summary (`-rA`), in the variants
 * that its data sets name. Every parser is linear in the log: a line of megabytes costs no more than many short ones.
 */
import { endsWithWord, logWords, type StatusMap, startsWithWord, wordsOf } from "./statuses.ts";

/** `SKIPPED [3] path:7: why` counts tests and names none. */
const isSkipCount = (word: string | undefined, name: string | undefined): boolean =>
  word === "SKIPPED" && /^\[\d+\]$/u.test(name ?? "");

function summaryLines(log: string, edit: (line: string) => string, nameOf: (word: string) => string): StatusMap {
  const found: StatusMap = new Map();
  for (const raw of log.split("\n")) {
    const line = edit(raw);
    if (!startsWithWord(line)) continue;
    const [status, name] = wordsOf(line.startsWith("FAILED") ? line.replaceAll(" - ", " ") : line);
    if (status === undefined || name === undefined || isSkipCount(status, name)) continue;
    found.set(nameOf(name), status);
  }
  return found;
}

const same = (text: string): string => text;

export const parsePytest = (log: string): StatusMap => summaryLines(log, same, same);

/** Ids with a path as their parameter keep only its last part. */
export const parsePytestOptions = (log: string): StatusMap => summaryLines(log, same, shortOption);

function shortOption(name: string): string {
  const open = name.indexOf("[");
  const close = name.lastIndexOf("]");
  if (open === -1 || close < open) return name;
  const option = name.slice(open + 1, close);
  const isPath = option.startsWith("/") && !option.startsWith("//") && !option.includes("*");
  return `${name.slice(0, open)}[${isPath ? option.slice(option.lastIndexOf("/")) : option}]`;
}

/** Mouse buttons are printed by name or by number, as the version of Python has it. */
export const parseMatplotlib = (log: string): StatusMap =>
  summaryLines(log, (line) => line.replaceAll("MouseButton.LEFT", "1").replaceAll("MouseButton.RIGHT", "3"), same);

/** Without colours and other control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out
const plain = (line: string): string => line.replaceAll(/\[\d+m/gu, "").replaceAll(/[\x01-\x1f]/gu, "");

/** Whole ids, blanks included; also of versions that write the word behind the id. */
export function parsePytestV2(log: string): StatusMap {
  const found: StatusMap = new Map();
  for (const raw of log.split("\n")) {
    const line = plain(raw);
    if (startsWithWord(line)) {
      const cut = line.startsWith("FAILED") ? (line.split(" - ", 1)[0] ?? "") : line;
      const [status, ...name] = wordsOf(cut);
      if (status === undefined || name.length === 0 || isSkipCount(status, name[0])) continue;
      found.set(name.join(" "), status);
    } else if (endsWithWord(line)) {
      const words = wordsOf(line);
      const status = words.pop();
      if (status !== undefined && words.length > 0) found.set(words.join(" "), status);
    }
  }
  return found;
}

/** As SWE-Gym reads pydantic's: an older form of the above, and what stands in brackets behind FAILED is left out. */
export function parsePydantic(log: string): StatusMap {
  const found: StatusMap = new Map();
  for (const raw of log.split("\n")) {
    const line = withoutFailedBrackets(plain(raw));
    const words = wordsOf(line.startsWith("FAILED") ? line.replaceAll(" - ", " ") : line);
    const [first, second] = words;
    if (first === undefined || second === undefined) continue;
    if (startsWithWord(line)) found.set(second, first);
    else if (endsWithWord(line)) found.set(first, second);
  }
  return found;
}

function withoutFailedBrackets(line: string): string {
  if (!line.includes("FAILED")) return line;
  const parts: string[] = [];
  let from = 0;
  for (let at = line.indexOf("FAILED"); at !== -1; at = line.indexOf("FAILED", Math.max(at + 1, from))) {
    let open = at + "FAILED".length;
    while (/\s/u.test(line.charAt(open))) open++;
    if (line.charAt(open) !== "[") continue;
    const close = line.indexOf("]", open);
    if (close === -1) break;
    parts.push(line.slice(from, at), "FAILED");
    from = close + 1;
  }
  return parts.join("") + line.slice(from);
}

/** `path::test PASSED [ 10%]`, as SWE-smith runs it: the first word of a line, then the status. */
export function parsePytestVerbose(log: string): StatusMap {
  const found: StatusMap = new Map();
  for (const line of log.split("\n")) {
    const [name, rest] = wordsOf(line);
    if (name === undefined || rest === undefined || !line.startsWith(name)) continue;
    const status = logWords.find((word) => rest.startsWith(word));
    if (status !== undefined) found.set(name, status);
  }
  return found;
}

/** Lines as `seaborn` prints them, where a test's id may stand before or after its status. */
export function parseSeaborn(log: string): StatusMap {
  const found: StatusMap = new Map();
  for (const line of log.split("\n")) {
    const [first, second] = wordsOf(line);
    if (first === undefined || second === undefined) continue;
    if (line.startsWith("FAILED")) found.set(second, "FAILED");
    else if (line.includes(" PASSED ")) {
      if (second === "PASSED") found.set(first, "PASSED");
    } else if (line.startsWith("PASSED")) found.set(second, "PASSED");
  }
  return found;
}
