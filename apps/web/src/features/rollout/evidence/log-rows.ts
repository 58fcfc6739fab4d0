/** Lines of a sandbox's log. One that can't be read is counted, not guessed: a file that was cut has one in its middle. Pure. */
import { jsonOrUndefined } from "@rolldeck/contracts/json-or-undefined";
import { SandboxLogLine } from "@rolldeck/contracts/sandbox-log";

export interface SandboxLog {
  readonly lines: readonly SandboxLogLine[];
  readonly unreadable: number;
}

export function readSandboxLog(text: string): SandboxLog {
  const lines: SandboxLogLine[] = [];
  let unreadable = 0;
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const parsed = SandboxLogLine.safeParse(jsonOrUndefined(line));
    if (parsed.success) lines.push(parsed.data);
    else unreadable += 1;
  }
  return { lines, unreadable };
}

/** @param words all of which the line has */
export function logRows(log: SandboxLog, onlyTrouble: boolean, words: string): SandboxLogLine[] {
  const wanted = words.toLowerCase().split(/\s+/u).filter(Boolean);
  return log.lines.filter((line) => {
    if (onlyTrouble && line.trouble === null && (line.exitCode ?? 0) === 0) return false;
    const text = `${line.what} ${line.subject} ${line.trouble ?? ""}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

/** What a command is run through so that it finds a clean environment: the same before each of them. */
const wrapping = /^(?:\S*\/)?env -i(?: \w+=\S*)* /u;

/** A command as far as it tells one line from another: without its wrapping, on one line. */
export const subjectWords = (subject: string): string => subject.replace(wrapping, "").replace(/\s+/gu, " ").trim();
