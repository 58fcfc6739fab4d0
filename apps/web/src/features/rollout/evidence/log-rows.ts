/** Lines of a sandbox's log. One that can't be read is counted, not guessed: a file that was cut has one in its middle. Pure. */
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
    const parsed = SandboxLogLine.safeParse(parseJson(line));
    if (parsed.success) lines.push(parsed.data);
    else unreadable += 1;
  }
  return { lines, unreadable };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
