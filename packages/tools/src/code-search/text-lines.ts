/** Lines that hold a text, in any letters: what grep -i -n -F would find. Pure. */
import type { IndexedFile } from "./indexed-file.ts";

export interface LineHits {
  readonly file: IndexedFile;
  /** From 1, each once. */
  readonly lines: readonly number[];
}

const maxLinesPerFile = 1000;

/** Files that hold it, tests last. At most `maxFiles`. */
export function findLines(files: readonly IndexedFile[], text: string, maxFiles: number): LineHits[] {
  const wanted = text.toLowerCase();
  if (wanted.trim() === "") return [];
  const ordered = [...files].sort((a, b) => Number(a.test) - Number(b.test));
  const hits: LineHits[] = [];
  for (const file of ordered) {
    if (hits.length >= maxFiles) break;
    const lines = linesWith(file.lower, wanted);
    if (lines.length > 0) hits.push({ file, lines });
  }
  return hits;
}

function linesWith(lower: string, wanted: string): number[] {
  const lines: number[] = [];
  let line = 1;
  let counted = 0;
  for (let at = lower.indexOf(wanted); at !== -1 && lines.length < maxLinesPerFile; ) {
    for (let end = lower.indexOf("\n", counted); end !== -1 && end < at; end = lower.indexOf("\n", counted)) {
      line += 1;
      counted = end + 1;
    }
    lines.push(line);
    const next = lower.indexOf("\n", at);
    if (next === -1) break;
    at = lower.indexOf(wanted, next);
  }
  return lines;
}
