/** Logs of R2E-Gym's `run_tests.sh`, read as its own grader reads them: the part after pytest's short summary, names without files. */
import { type StatusMap, strip } from "./statuses.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are what is taken out
const colours = /\u001b\[[0-9;]*m|\r/gu;

export const withoutColours = (text: string): string => text.replaceAll(colours, "");

/** @param output as the script printed it */
export function parseR2e(output: string): StatusMap {
  const found: StatusMap = new Map();
  const [, summary] = withoutColours(output).split("short test summary info");
  if (summary === undefined) return found;
  for (const line of strip(summary).split("\n")) {
    const name = line.split("::").slice(1).join(".");
    if (line.includes("PASSED")) found.set(name, "PASSED");
    else if (line.includes("FAILED")) found.set(cutReason(name), "FAILED");
    else if (line.includes("ERROR")) found.set(cutReason(name), "ERROR");
  }
  return new Map([...found].sort(byName).map(([name, status]) => [cutReason(name), status]));
}

export const cutReason = (name: string): string => name.split(" - ", 1)[0] ?? "";

/** By code points, as Python sorts: where two names become one, the later one's status counts. */
const byName = ([a]: readonly [string, string], [b]: readonly [string, string]): number =>
  Buffer.compare(Buffer.from(a), Buffer.from(b));

/** The same tests with the same words; a line without a name never matters but for the number of lines. */
export function sameOutcome(found: StatusMap, expected: StatusMap): boolean {
  return (
    found.size === expected.size && [...found].every(([name, status]) => name === "" || expected.get(name) === status)
  );
}
