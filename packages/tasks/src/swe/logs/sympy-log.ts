/** Logs of SymPy's `bin/test -C --verbose`, read as the SWE-bench harness reads them, linear in the log. */
import { type StatusMap, strip, wordsOf } from "./statuses.ts";

const ends = { " E": "ERROR", " F": "FAILED", " ok": "PASSED" } as const;

export function parseSympy(log: string): StatusMap {
  const found: StatusMap = new Map();
  const lines = log.split("\n");
  for (const line of lines) {
    const name = failureHeading(line);
    if (name !== null) found.set(name, "FAILED");
  }
  for (const raw of lines) {
    const line = strip(raw);
    if (!line.startsWith("test_")) continue;
    for (const [end, status] of Object.entries(ends))
      if (line.endsWith(end)) found.set(wordsOf(line)[0] ?? line, status);
  }
  return found;
}

/** `____ path/test_x.py:test_name ____` → `path/test_x.py:test_name`: from the first blank to the last. */
function failureHeading(line: string): string | null {
  const first = line.indexOf(" ");
  const last = line.lastIndexOf(" ");
  const dot = line.lastIndexOf(".py:", last - ".py:".length);
  return first === -1 || dot < first + 1 ? null : line.slice(first + 1, last);
}
